// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/cluster/cluster.h"

namespace evenkeel::gui {

/// Something about the drawing that is allowed and hardly meant.
struct ClusterProblem {
  std::string item;  // machine or switch
  std::string text;  // a sentence with its consequence
  bool operator==(const ClusterProblem&) const = default;
};

/// Machines that no switch and no link reaches although there are some, and switches that join nothing. O(nodes + connections).
[[nodiscard]] std::vector<ClusterProblem> clusterProblems(const Cluster& cluster);

}  // namespace evenkeel::gui
