// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/comm/comm.h"

namespace evenkeel {

/// Which way the messages of a rank on a card go.
struct Routes {
  std::vector<bool> isCard;                           // by rank
  std::function<bool(const at::Tensor&)> isOnCard;    // of a tensor: whether its memory is the card's
};

/// Sends what lies on the card over `cards` where all that take part are cards, else through a copy on the host over `host`, as do
/// ranks on CPU cores with what they have; and what lies on the host over `host`: losses, norms, tables. Every rank decides alike, for
/// it depends on the ranks only. A copy to the host waits for the card. Both must be of this rank.
[[nodiscard]] std::unique_ptr<Comm> routed(std::unique_ptr<Comm> host, std::unique_ptr<Comm> cards, Routes routes);

}  // namespace evenkeel
