// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/units.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/rendezvous.h"

namespace evenkeel {

struct GlooOptions {
  int rank = 0, worldSize = 1;
  std::string bindAddress;             // of this node on the training interface
  Seconds peerTimeout{60};
  std::vector<std::string> rankNames;  // "rank 2 (cpu-0/2)", by rank: how errors call them
};

/// Comm over c10d's Gloo process groups, for CPU tensors: one group of all ranks for transfers, one more a joined set, all on one
/// device. Connects to all ranks; `rendezvous` must outlive it. A rank that blames a peer leaves a note of it in the rendezvous,
/// so that those who only see this rank go can name the culprit too.
[[nodiscard]] Result<std::unique_ptr<Comm>> connectGloo(Rendezvous& rendezvous, GlooOptions options);

}  // namespace evenkeel
