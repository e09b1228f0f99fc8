// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/search/eth/stage_search.h"

namespace evenkeel {

struct Balance {
  std::vector<std::int64_t> batches;  // samples of each pipeline; 0: better without it. They sum to the global batch
  Seconds time;                       // of the slowest
};

/// Step 3 b (algorithms.md 5.1): the next micro-batch goes to the pipeline whose finish time stays smallest, the first of equal
/// ones, until the global batch is met; the samples that are left at last go one by one. O(micro-batches x log pipelines).
[[nodiscard]] Balance balanceBatches(std::span<const PipelineChoice* const> pipelines, std::int64_t globalBatch);

}  // namespace evenkeel
