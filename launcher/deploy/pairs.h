// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <vector>

#include "core/cluster/device_type.h"
#include "launcher/ssh/host.h"

namespace evenkeel {

/// A node that can be reached, with our agent on it and its address on the training interface.
struct PairNode {
  std::string name;
  Host* host = nullptr;
  std::string agent;    // the program there
  std::string address;  // numeric
};

/// Why one node cannot open a connection to another.
struct PairFault {
  std::string from, to, reason;
  bool operator==(const PairFault&) const = default;
};

/// Lets every node connect to every other one at its address, all at once; empty: all can. A node that cannot even listen there
/// is a fault between it and itself. Nothing stays behind.
[[nodiscard]] Result<std::vector<PairFault>> connectionMatrix(const std::vector<PairNode>& nodes,
                                                              std::chrono::milliseconds deadline,
                                                              const std::stop_token& stop = {});

/// What a connection between two nodes (indices) gives: half a round trip of one byte, and the rate of messages of several sizes.
struct PairRate {
  std::size_t first = 0, second = 0;
  LinkSpec link;
};

/// Measures all pairs, one after the other so that they do not share a wire; `onPair` hears of each. A pair that cannot connect
/// is an Error. About half a second a size and pair.
[[nodiscard]] Result<std::vector<PairRate>> measurePairs(const std::vector<PairNode>& nodes, const std::vector<Bytes>& sizes,
                                                         std::chrono::milliseconds deadline,
                                                         const std::function<void(const PairRate&)>& onPair = {},
                                                         const std::stop_token& stop = {});

}  // namespace evenkeel
