// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/search/eth/grouping.h"
#include "core/search/search.h"

namespace evenkeel {

/// How unevenly a grouping spreads compute: variances divided by the square of the mean, so that only ratios count.
struct Spread {
  double inter = 0;  // of the pipelines' FLOP/s
  double intra = 0;  // of the devices' FLOP/s inside a pipeline, mean over the pipelines
};
[[nodiscard]] Spread spreadOf(const Grouping& grouping, const std::vector<double>& flopsOfType);

/// Step 6 (algorithms.md 5.1): within each number of pipelines the even groupings first, because a good incumbent skips the
/// others. Uneven devices inside a pipeline hurt as much as layers are coarse, so the intra part weighs devices per unit of the
/// model. Numbers of pipelines come in the order in which they were generated. Stable.
void orderByVariance(std::vector<Grouping>& groupings, const std::vector<double>& flopsOfType, int unitCount);

}  // namespace evenkeel
