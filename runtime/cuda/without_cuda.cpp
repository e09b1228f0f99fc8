// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/cuda/cuda.h"

namespace evenkeel {
namespace {

Error noCuda(const std::string& place) {
  return invalidInput(place, "this worker was built without CUDA", "build one for the PyTorch of the node: ./run.sh --cuda DIRECTORY");
}

}  // namespace

bool isBuiltForCards() { return false; }

Result<ComputeDevice> openCard(const std::string& place) { return noCuda(place); }

Result<std::unique_ptr<Comm>> connectNccl(Rendezvous&, PeerWatch&, int, int) { return noCuda("nccl"); }

}  // namespace evenkeel
