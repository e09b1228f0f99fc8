// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/cluster_problems.h"

#include <fmt/format.h>

#include <map>
#include <set>

namespace evenkeel::gui {

namespace {

/// Machines and switches that a path of links and memberships joins to any switch.
std::set<std::string> reachedBySwitches(const Cluster& cluster) {
  std::map<std::string, std::vector<std::string>> neighbours;
  const auto join = [&](const std::string& a, const std::string& b) {
    neighbours[a].push_back(b);
    neighbours[b].push_back(a);
  };
  std::set<std::string> reached;
  std::vector<std::string> open;
  const auto reach = [&](const std::string& name) {
    if (reached.insert(name).second) open.push_back(name);
  };
  for (const Switch& s : cluster.switches) {
    for (const std::string& member : s.members) join(s.name, member);
    reach(s.name);
  }
  for (const Link& link : cluster.links)
    join(cluster.nodes[static_cast<std::size_t>(link.first)].name, cluster.nodes[static_cast<std::size_t>(link.second)].name);
  while (!open.empty()) {
    const std::string next = std::move(open.back());
    open.pop_back();
    for (const std::string& neighbour : neighbours[next]) reach(neighbour);
  }
  return reached;
}

}  // namespace

std::vector<ClusterProblem> clusterProblems(const Cluster& cluster) {
  std::vector<ClusterProblem> problems;
  if (!cluster.switches.empty()) {
    const std::set<std::string> reached = reachedBySwitches(cluster);
    for (const Node& node : cluster.nodes) {
      if (!reached.contains(node.name))
        problems.push_back({node.name, fmt::format("no drawn path leads from {} to a switch: planners take the slower NIC of both ends.", node.name)});
    }
  }
  std::set<std::string> joined;
  for (const Switch& s : cluster.switches) joined.insert(s.members.begin(), s.members.end());
  for (const Switch& s : cluster.switches) {
    const std::size_t ports = s.members.size() + (joined.contains(s.name) ? 1 : 0);
    if (ports < 2)
      problems.push_back(
          {s.name, fmt::format("{} joins {} and so changes nothing.", s.name, ports == 0 ? "no machine" : "only one")});
  }
  return problems;
}

}  // namespace evenkeel::gui
