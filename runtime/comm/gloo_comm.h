// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>

#include "runtime/comm/comm.h"
#include "runtime/comm/peer_watch.h"
#include "runtime/comm/rendezvous.h"

namespace evenkeel {

struct GlooOptions {
  int rank = 0, worldSize = 1;
  std::string bindAddress;  // of this node on the training interface
};

/// Comm over c10d's Gloo process groups, for CPU tensors: one group of all ranks for transfers, one more a joined set, all on one
/// device. Connects to all ranks; `rendezvous` and `watch` must outlive it. `watch` asks it whose connections are closed.
[[nodiscard]] Result<std::unique_ptr<Comm>> connectGloo(Rendezvous& rendezvous, PeerWatch& watch, GlooOptions options);

}  // namespace evenkeel
