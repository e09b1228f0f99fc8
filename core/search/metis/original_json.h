// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>

#include "core/base/json.h"
#include "core/search/metis/original.h"

namespace evenkeel::metis {

/// How public Metis prints a plan behind its rank and cost: node sequence, device groups, strategies, batches, layer partition.
[[nodiscard]] std::string printed(const OriginalPlan& plan);

/// A plan document for the cheapest of `plans` (not empty): `search.original` has its cost_ms, the plan as the original prints it
/// and part by part, the number of plans and the best twenty. `cluster`, `model`, `training` and `pipelines` are there only where
/// the plan keeps our invariants: every stage priced, no layer or sample lost, tp groups of one type in one node.
[[nodiscard]] Json documentOf(const OriginalCase& given, std::span<const OriginalPlan> plans);

}  // namespace evenkeel::metis
