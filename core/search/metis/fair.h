// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/search/session.h"

namespace evenkeel::metis {

struct FairOptions {
  double variance = 1;   // least group size in units of devices / stages
  int mostPermuted = 4;  // groups that are permuted one by one
  int mostSamples = 64;  // of a replica in one micro-batch; the original is limited by what was profiled
  bool mayRuleOut = true;  // layouts that LayoutBound shows to be too slow or too large are left out; changes nothing but the time
};

/// One plan as the mended Metis costs it.
struct FairPlan {
  std::vector<Pipeline> pipelines;
  Seconds estimate;  // by its own estimator, not ours
};

/// The search of baseline-metis.md 2 to 5 with faults B1, B3 to B8, B11, B12, B15, B18 and B19 mended, on the op costs of the
/// session's model. All plans that it costs, fastest by its own estimate first, at most `most` of them. Single thread; ends early
/// when the session is stopped.
[[nodiscard]] std::vector<FairPlan> searchFairly(SearchSession& session, const FairOptions& options, std::size_t most);

}  // namespace evenkeel::metis
