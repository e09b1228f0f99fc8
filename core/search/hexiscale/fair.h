// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <vector>

#include "core/search/session.h"

namespace evenkeel::hexiscale {

struct FairOptions {
  std::optional<int> pipelines, microBatch;  // only this many; the original is given both by its user
};

/// One plan as HexiScale prices it.
struct FairPlan {
  std::vector<Pipeline> pipelines;
  double estimate = 0;       // seconds of an iteration by its own estimator, not ours
  bool fitsByItsOwn = true;  // by its own account of memory, not ours
};

/// Every number of pipelines (all up to 16, then steps of a third to a half), every micro-batch, for each pipeline one, two and
/// three sub-parts, with faults B1 to B7 mended. For up to 5 pipelines all combinations of sub-parts are priced, beyond that each
/// pipeline's fastest and improvements of it. Those that fit by its own account of memory first, each fastest first by its own
/// estimate; at most one plan for each number of pipelines and micro-batch. Single thread; ends early when the session is
/// stopped.
[[nodiscard]] std::vector<FairPlan> searchFairly(SearchSession& session, const FairOptions& options);

}  // namespace evenkeel::hexiscale
