// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// All that the worker knows of CUDA and NCCL. Built from cuda_device.cpp and nccl_comm.cpp where LibTorch has them, else from
// without_cuda.cpp: nothing else of the worker is compiled differently.
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/comm.h"
#include "runtime/comm/peer_watch.h"
#include "runtime/comm/rendezvous.h"
#include "runtime/device/compute_device.h"

namespace evenkeel {

/// Whether this worker was built for cards.
[[nodiscard]] bool isBuiltForCards();

/// The one card that CUDA_VISIBLE_DEVICES leaves visible. Call it before anything else of CUDA is used, once. `place` names it in
/// errors: no driver, no card, a card that this LibTorch has no code for, each with the way out.
[[nodiscard]] Result<ComputeDevice> openCard(const std::string& place);

/// Comm over c10d's NCCL process groups, for tensors on the card of this process: a group of two for each line (open()), one a joined
/// set. `rendezvous` and `watch` must outlive it. Waiting is polling, so that the deadline of a peer holds and its name is told; what
/// NCCL itself notices of a dead peer ends the wait at once.
[[nodiscard]] Result<std::unique_ptr<Comm>> connectNccl(Rendezvous& rendezvous, PeerWatch& watch, int rank, int worldSize);

}  // namespace evenkeel
