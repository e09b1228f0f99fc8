// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/problem.h"
#include "core/search/constraints.h"

namespace evenkeel {

/// What a plan of this problem may use. Where every device runs here, planners keep to what our runtime executes.
struct Limits {
  std::vector<int> tps;  // allowed degrees, ascending powers of two that divide the model and fit into a node
  int mostDp = 1;        // replicas inside a stage
  bool recompute = false;
  std::vector<DeviceId> devices;  // those that have the precision, by node and index
};
[[nodiscard]] Limits limitsOf(const Problem& problem, const Constraints& constraints = {});

/// Numbers of samples worth a try as micro-batch: 1, 2, 3, 4, 6, 8, 12, 16, ... up to `most`, and `most` itself. Ascending.
[[nodiscard]] std::vector<int> microBatchChoices(std::int64_t most);

}  // namespace evenkeel
