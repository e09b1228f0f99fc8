// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/cluster_problems.h"

#include <fmt/format.h>

#include <set>

namespace evenkeel::gui {

std::vector<ClusterProblem> clusterProblems(const Cluster& cluster) {
  std::vector<ClusterProblem> problems;
  std::set<std::string> reached;
  for (const Switch& s : cluster.switches) reached.insert(s.members.begin(), s.members.end());
  for (const Link& link : cluster.links) {
    reached.insert(cluster.nodes[static_cast<std::size_t>(link.first)].name);
    reached.insert(cluster.nodes[static_cast<std::size_t>(link.second)].name);
  }
  if (!cluster.switches.empty()) {
    for (const Node& node : cluster.nodes) {
      if (!reached.contains(node.name))
        problems.push_back(
            {node.name,
             fmt::format("{} is joined to no switch and no link: planners take the slower NIC of both ends.", node.name)});
    }
  }
  for (const Switch& s : cluster.switches) {
    const std::size_t ports = s.members.size() + (reached.contains(s.name) ? 1 : 0);
    if (ports < 2)
      problems.push_back(
          {s.name, fmt::format("{} joins {} and so changes nothing.", s.name, ports == 0 ? "no machine" : "only one")});
  }
  return problems;
}

}  // namespace evenkeel::gui
