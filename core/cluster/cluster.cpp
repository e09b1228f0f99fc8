// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cluster/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>

#include "core/base/words.h"

namespace evenkeel {
namespace {

struct SwitchPath {
  LinkSpec link;
  std::vector<int> switches;  // each once
};

/// Widest path through the drawn switches from node a to node b: least hops first, then bandwidth. None if they do not connect.
std::optional<SwitchPath> pathThroughSwitches(const Cluster& cluster, const Node& a, const Node& b) {
  struct Reach {
    BytesPerSecond bandwidth;
    Seconds latency;
    std::vector<int> via;
  };
  std::map<std::string, Reach> reached{{a.name, {a.nic.bandwidth, a.nic.latency, {}}}};
  std::vector<std::string> frontier{a.name};
  while (!frontier.empty()) {
    std::map<std::string, Reach> next;
    for (const std::string& at : frontier) {
      const Reach from = reached.at(at);
      const auto visit = [&](const std::string& to, int index) {
        if (reached.contains(to)) return;
        const Switch& via = cluster.switches[static_cast<std::size_t>(index)];
        BytesPerSecond bandwidth = std::min(from.bandwidth, via.bandwidth);
        if (via.total.value > 0) bandwidth = std::min(bandwidth, via.total);
        Reach reach{bandwidth, from.latency + via.latency, from.via};
        if (std::ranges::find(reach.via, index) == reach.via.end()) reach.via.push_back(index);
        const auto found = next.find(to);
        if (found == next.end() || found->second.bandwidth < reach.bandwidth) next[to] = std::move(reach);
      };
      for (int index = 0; index < static_cast<int>(cluster.switches.size()); ++index) {
        const Switch& s = cluster.switches[static_cast<std::size_t>(index)];
        if (s.name == at) {
          for (const std::string& member : s.members) visit(member, index);
        } else if (std::ranges::find(s.members, at) != s.members.end()) {
          visit(s.name, index);
        }
      }
    }
    frontier.clear();
    for (const auto& [name, reach] : next) {
      reached[name] = reach;
      const bool isNode = std::ranges::any_of(cluster.nodes, [&](const Node& n) { return n.name == name; });
      if (!isNode) frontier.push_back(name);  // nodes do not forward
    }
    if (const auto found = reached.find(b.name); found != reached.end()) {
      return SwitchPath{
          LinkSpec{std::min(found->second.bandwidth, b.nic.bandwidth), std::max(found->second.latency, b.nic.latency)},
          found->second.via};
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<DeviceId> Cluster::devices() const {
  std::vector<DeviceId> all;
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    for (int index = 0; index < static_cast<int>(nodes[static_cast<std::size_t>(node)].devices.size()); ++index) {
      all.push_back({node, index});
    }
  }
  return all;
}

int Cluster::deviceCount() const {
  int count = 0;
  for (const Node& node : nodes) count += static_cast<int>(node.devices.size());
  return count;
}

bool Cluster::contains(DeviceId device) const {
  return device.node >= 0 && device.node < static_cast<int>(nodes.size()) && device.index >= 0 &&
         device.index < static_cast<int>(nodes[static_cast<std::size_t>(device.node)].devices.size());
}

int Cluster::typeIndexOf(DeviceId device) const {
  assert(contains(device));
  return nodes[static_cast<std::size_t>(device.node)].devices[static_cast<std::size_t>(device.index)].type;
}

const DeviceType& Cluster::typeOf(DeviceId device) const { return deviceTypes[static_cast<std::size_t>(typeIndexOf(device))]; }

std::string Cluster::nameOf(DeviceId device) const {
  if (!contains(device)) return fmt::format("{}/{}", device.node, device.index);
  return fmt::format("{}/{}", nodes[static_cast<std::size_t>(device.node)].name, device.index);
}

Result<DeviceId> Cluster::find(std::string_view nodeSlashIndex) const {
  const std::size_t slash = nodeSlashIndex.rfind('/');
  const std::string where(nodeSlashIndex);
  if (slash == std::string_view::npos) return invalidInput(where, "is no device", "expected \"node/index\"");
  const std::string_view nodeName = nodeSlashIndex.substr(0, slash);
  const std::string_view digits = nodeSlashIndex.substr(slash + 1);
  const auto index = parseNumber<int>(digits);
  if (!index) return invalidInput(where, "is no device", "expected \"node/index\"");
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    if (nodes[static_cast<std::size_t>(node)].name != nodeName) continue;
    const DeviceId device{node, *index};
    if (contains(device)) return device;
    return invalidInput(where,
                        fmt::format("node {} has {} devices", nodeName, nodes[static_cast<std::size_t>(node)].devices.size()));
  }
  return invalidInput(where, fmt::format("the cluster has no node \"{}\"", nodeName));
}

LinkSpec Cluster::linkBetween(DeviceId a, DeviceId b) const {
  assert(contains(a) && contains(b) && a != b);
  const Node& nodeA = nodes[static_cast<std::size_t>(a.node)];
  const Node& nodeB = nodes[static_cast<std::size_t>(b.node)];
  if (a.node == b.node) return nodeA.intra;
  for (const Link& link : links) {
    if ((link.first == a.node && link.second == b.node) || (link.first == b.node && link.second == a.node)) return link.spec;
  }
  if (!switches.empty()) {
    if (const auto path = pathThroughSwitches(*this, nodeA, nodeB)) return path->link;
  }
  LinkSpec slower = nodeA.nic.bandwidth <= nodeB.nic.bandwidth ? nodeA.nic : nodeB.nic;
  slower.latency = std::max(nodeA.nic.latency, nodeB.nic.latency);
  return slower;
}

std::vector<int> Cluster::switchesBetween(DeviceId a, DeviceId b) const {
  assert(contains(a) && contains(b));
  if (a.node == b.node || switches.empty()) return {};
  for (const Link& link : links) {
    if ((link.first == a.node && link.second == b.node) || (link.first == b.node && link.second == a.node)) return {};
  }
  const auto path = pathThroughSwitches(*this, nodes[static_cast<std::size_t>(a.node)], nodes[static_cast<std::size_t>(b.node)]);
  return path ? path->switches : std::vector<int>{};
}

}  // namespace evenkeel
