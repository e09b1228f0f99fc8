// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/cluster/cluster.h"

namespace evenkeel {

/// `tp` devices of one type in one node.
using TpGroup = std::vector<DeviceId>;

/// As many groups as the nodes hold, in order of device id; what does not fill a group is left out. `devices` is sorted.
[[nodiscard]] std::vector<TpGroup> tpGroups(const Cluster& cluster, std::span<const DeviceId> devices, int tp);

/// Orders in which nodes are worth filling, as the rank of each node: `first`, and where nodes hold unlike numbers of devices
/// also those with most and those with fewest first: where a large tp group goes decides what the rings of the others look like.
[[nodiscard]] std::vector<std::vector<int>> fillingOrders(const Cluster& cluster, std::vector<int> first);

/// Devices that are still to be given to tp groups, by kind (whatever the caller calls alike) and node.
class FreeDevices {
 public:
  /// Nodes of a lower rank are used up first, and in a node the devices of a lower index.
  FreeDevices(std::span<const DeviceId> devices, const std::function<int(DeviceId)>& kindOf,
              const std::function<int(int)>& rankOfNode);
  /// Fills `group` with devices of the first node that has so many of the kind. False: none has.
  [[nodiscard]] bool take(int kind, std::span<DeviceId> group);

 private:
  std::map<std::pair<int, int>, std::vector<DeviceId>> free_;  // (kind, rank of the node) -> devices, the next one last
};

}  // namespace evenkeel
