// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/search/search.h"

namespace evenkeel {

/// Ours (algorithms.md 5.2, optimal.md): pipelines priced by their devices, packed into the cluster, with a bound that says how
/// far from the optimum the plan can be at most.
[[nodiscard]] Planner optimalPlanner();

}  // namespace evenkeel
