// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/search/hexiscale/stages.h"

namespace evenkeel::hexiscale {

/// A recorded run of public HexiScale: what it was given, and what METIS answered whenever it was asked. METIS is never asked
/// anew: its 32-bit and 64-bit builds already differ.
struct OriginalCase {
  Setting setting;
  std::vector<std::string> types;  // of each device
  std::vector<int> machines;       // of each device
  std::string model;
  std::int64_t globalBatch = 0, microBatch = 0;  // both summed over the pipelines
  int pipelines = 0;                             // at the start
  std::vector<std::vector<int>> answers;         // the part of each vertex, one list a call
};

/// Reads `folder`/metis_calls.jsonl, and case.json and machines.json beside it or one folder up. Errors name the file.
[[nodiscard]] Result<OriginalCase> loadOriginalCase(const std::filesystem::path& folder);

/// Fault B1: micro-batches are computed for the number of pipelines at the start, and whatever the number is later, the whole
/// batch counts as trained.
enum class Batching { AsShipped, Consistent };

/// One plan that the original priced.
struct Iteration {
  std::vector<Layout> pipelines;
  std::vector<std::vector<double>> memoryGib;  // by pipeline, stage
  double seconds = 0;
  double tokensPerSecond = 0;  // 0: out of memory
};

/// Every plan of the run in its order, from the recorded answers (baseline-hexiscale.md 1.2 to 1.8).
[[nodiscard]] Result<std::vector<Iteration>> replay(const OriginalCase& given, Batching batching);

/// A document with `search.original`: the best plan with tokens_per_s, seconds, stages and layers, and every iteration. Public
/// HexiScale writes no plan that could be launched, so there are no `pipelines` of ours.
[[nodiscard]] Json documentOf(const OriginalCase& given, const std::vector<Iteration>& iterations);

}  // namespace evenkeel::hexiscale
