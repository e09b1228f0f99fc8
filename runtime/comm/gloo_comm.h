// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>

#include "core/base/units.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/peer_notes.h"
#include "runtime/comm/rendezvous.h"

namespace evenkeel {

struct GlooOptions {
  int rank = 0, worldSize = 1;
  std::string bindAddress;  // of this node on the training interface
  Seconds peerTimeout{60};
  std::vector<std::string> rankNames;  // "rank 2 (cpu-0/2)", by rank: how errors call them
  /// Called, from another thread, when a wait has lasted far longer than its own deadline. Should end the process.
  std::function<void(const Error&)> onStuck;
};

/// Comm over c10d's Gloo process groups, for CPU tensors: one group of all ranks for transfers, one more a joined set, all on one
/// device. Connects to all ranks; `rendezvous` must outlive it. Errors name the rank that failed first as far as the notes of
/// the others tell it (a heuristic), not merely the neighbour that was seen to go.
[[nodiscard]] Result<std::unique_ptr<Comm>> connectGloo(Rendezvous& rendezvous, PeerNotes notes, GlooOptions options);

}  // namespace evenkeel
