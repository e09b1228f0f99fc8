// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/tp_groups.h"

#include <algorithm>
#include <map>

namespace evenkeel {

std::vector<TpGroup> tpGroups(const Cluster& cluster, std::span<const DeviceId> devices, int tp) {
  std::vector<TpGroup> groups;
  std::map<std::pair<int, int>, TpGroup> open;  // (node, type) -> the group that is being filled
  for (const DeviceId device : devices) {
    TpGroup& group = open[{device.node, cluster.typeIndexOf(device)}];
    group.push_back(device);
    if (static_cast<int>(group.size()) == tp) groups.push_back(std::exchange(group, {}));
  }
  std::ranges::sort(groups);
  return groups;
}

FreeDevices::FreeDevices(std::span<const DeviceId> devices, const std::function<int(DeviceId)>& kindOf,
                         const std::function<int(int)>& rankOfNode) {
  for (const DeviceId device : devices) free_[{kindOf(device), rankOfNode(device.node)}].push_back(device);
  for (auto& [where, left] : free_) std::ranges::reverse(left);
}

bool FreeDevices::take(int kind, std::span<DeviceId> group) {
  auto pool = free_.lower_bound({kind, 0});
  while (pool != free_.end() && pool->first.first == kind && pool->second.size() < group.size()) ++pool;
  if (pool == free_.end() || pool->first.first != kind) return false;
  for (DeviceId& device : group) {
    device = pool->second.back();
    pool->second.pop_back();
  }
  if (pool->second.empty()) free_.erase(pool);
  return true;
}

}  // namespace evenkeel
