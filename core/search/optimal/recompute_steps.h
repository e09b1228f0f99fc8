// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/cost/cost_model.h"

namespace evenkeel::optimal {

/// One unit of a kind goes from one set of recomputed ops to a larger saving.
struct RecomputeStep {
  UnitKind kind = UnitKind::Attention;
  OpSet ops;             // recomputed from then on
  std::int64_t freed = 0;  // bytes less saved for each micro-batch
  double seconds = 0;    // more of backward
  Bytes transient;       // workspace of such a unit
};

/// The corners of the convex hull of (bytes freed, time added) over all sets of ops of the kinds, those that free most bytes per
/// second first: a stage that lacks memory takes them in this order, and no other mix is cheaper but for one unit's step.
/// O(2^ops of a unit).
[[nodiscard]] std::vector<RecomputeStep> recomputeSteps(const OpCosts& costs, std::span<const UnitKind> kinds);

}  // namespace evenkeel::optimal
