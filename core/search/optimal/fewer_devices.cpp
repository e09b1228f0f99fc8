// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/fewer_devices.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace evenkeel::optimal {
namespace {

/// Lists for a small cluster, and for one whose search takes longer.
constexpr std::size_t kMostLists = 24, kMostListsOfMany = 4;
constexpr std::size_t kManyDevices = 24;
/// Up to so many each single device is worth a look.
constexpr std::size_t kVeryFewDevices = 10;

/// What makes nodes alike; those with drawn connections are each their own.
struct NodeLook {
  double reach = 0;  // bytes per second and device out of the node
  double intra = 0, latency = 0;
  std::vector<int> types;
  int drawn = -1;
  auto operator<=>(const NodeLook&) const = default;
};

NodeLook lookOf(const Cluster& cluster, int n) {
  const Node& node = cluster.nodes[static_cast<std::size_t>(n)];
  NodeLook look{.reach = node.nic.bandwidth.value / (node.nicPerDevice ? 1.0 : static_cast<double>(node.devices.size())),
                .intra = node.intra.bandwidth.value,
                .latency = node.nic.latency.value,
                .types = {}};
  for (const Device& device : node.devices) look.types.push_back(device.type);
  std::ranges::sort(look.types);
  if (!cluster.links.empty() || !cluster.switches.empty()) look.drawn = n;
  return look;
}

}  // namespace

std::vector<std::vector<DeviceId>> worthLeavingIdle(const Cluster& cluster, const Limits& limits) {
  std::map<NodeLook, std::vector<DeviceId>> byLook;  // the slowest way out first
  std::map<int, std::vector<DeviceId>> byType;
  std::map<int, NodeLook> looks;
  for (const DeviceId device : limits.devices) {
    if (!looks.contains(device.node)) looks.emplace(device.node, lookOf(cluster, device.node));
    byLook[looks.at(device.node)].push_back(device);
    byType[cluster.typeIndexOf(device)].push_back(device);
  }
  std::set<std::vector<DeviceId>> lists;
  const auto add = [&](const std::function<bool(DeviceId)>& isIdle) {
    std::vector<DeviceId> list;
    for (const DeviceId device : limits.devices) {
      if (isIdle(device)) list.push_back(device);
    }
    if (!list.empty() && list.size() < limits.devices.size()) lists.insert(std::move(list));
  };
  for (const auto& [type, devices] : byType) {
    add([&, t = type](DeviceId device) { return cluster.typeIndexOf(device) == t; });
    add([&, t = type](DeviceId device) { return cluster.typeIndexOf(device) != t; });
  }
  for (const auto& [look, devices] : byLook) {
    if (limits.devices.size() <= kVeryFewDevices) add([last = devices.back()](DeviceId device) { return device == last; });
    add([&, &l = look](DeviceId device) { return looks.at(device.node) == l; });
    add([&, &l = look](DeviceId device) { return looks.at(device.node) != l; });
    add([&, &l = look](DeviceId device) { return looks.at(device.node) <= l; });
    add([&, first = devices.front().node](DeviceId device) { return device.node != first; });
  }
  std::vector<std::vector<DeviceId>> all(lists.begin(), lists.end());
  std::ranges::stable_sort(all, {}, &std::vector<DeviceId>::size);
  all.resize(std::min(all.size(), limits.devices.size() <= kManyDevices ? kMostLists : kMostListsOfMany));
  return all;
}

}  // namespace evenkeel::optimal
