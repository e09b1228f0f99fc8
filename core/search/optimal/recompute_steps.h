// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/cost/cost_model.h"

namespace evenkeel::optimal {

/// One unit of a kind goes from one set of recomputed ops to a larger saving.
struct RecomputeStep {
  UnitKind kind = UnitKind::Attention;
  OpSet ops;               // recomputed from then on
  std::int64_t freed = 0;  // bytes less saved for each micro-batch
  double seconds = 0;      // more of backward
  Bytes transient;         // workspace of such a unit
};

/// Mixes whose units need no more workspace than some limit.
struct RecomputeMixes {
  std::int64_t transient = 0;  // at least so much is needed by a unit that recomputes more than the mixes before this one allow
  /// The corners of the convex hull of (bytes freed, time added) over all sets of ops of the kinds, those that free most bytes
  /// per second first: a stage that lacks memory takes them in this order, and no other mix is cheaper but for one unit's step.
  std::vector<RecomputeStep> steps;
};

/// Mixes for a few limits of the workspace, ascending; the last one allows every set of ops: much that is recomputed at once
/// frees most and needs most. O(2^ops of a unit).
[[nodiscard]] std::vector<RecomputeMixes> recomputeMixes(const OpCosts& costs, std::span<const UnitKind> kinds);

}  // namespace evenkeel::optimal
