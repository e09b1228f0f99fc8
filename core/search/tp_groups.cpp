// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/tp_groups.h"

#include <algorithm>
#include <map>
#include <numeric>

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

std::vector<std::vector<int>> fillingOrders(const Cluster& cluster, std::vector<int> first) {
  std::vector<std::vector<int>> orders = {std::move(first)};
  const auto sizeOf = [&](int node) { return static_cast<int>(cluster.nodes[static_cast<std::size_t>(node)].devices.size()); };
  std::vector<int> nodes(cluster.nodes.size());
  for (const int sign : {-1, 1}) {
    std::iota(nodes.begin(), nodes.end(), 0);
    std::ranges::stable_sort(nodes, {}, [&](int node) { return orders.front()[static_cast<std::size_t>(node)]; });
    std::ranges::stable_sort(nodes, {}, [&](int node) { return sign * sizeOf(node); });
    std::vector<int> ranks(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) ranks[static_cast<std::size_t>(nodes[i])] = static_cast<int>(i);
    if (std::ranges::find(orders, ranks) == orders.end()) orders.push_back(std::move(ranks));
  }
  return orders;
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
