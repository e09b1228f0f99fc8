// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/train/out_of_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "core/base/words.h"
#include "core/plan/block_map.h"

namespace evenkeel {

std::optional<Error> outOfMemory(const std::string& said, const Plan& plan, int rank) {
  const std::string text = lowerCase(said);
  const auto has = [&](const char* words) { return text.find(words) != std::string::npos; };
  // LibTorch's allocators for CUDA and for the CPU, and the standard library's
  if (!has("out of memory") && !has("can't allocate memory") && !has("bad_alloc")) return std::nullopt;
  const RankPlace place = rankPlaces(plan)[static_cast<std::size_t>(rank)];
  const Pipeline& pipeline = plan.pipelines[place.pipeline];
  const Stage& stage = pipeline.stages[place.stage];
  std::vector<std::string> ways;
  if (pipeline.microBatch > 1) ways.push_back(fmt::format("train micro-batches of {} instead of {}", pipeline.microBatch / 2, pipeline.microBatch));
  if (stage.recompute.empty()) ways.emplace_back("recompute ops of this stage");
  if (pipeline.stages.size() > 1 && stage.units.size() > 1) ways.emplace_back("move units to another stage");
  if (plan.training.zeroStage == 0 && plan.usedDevices().size() > 1) ways.emplace_back("plan with --zero 1");
  if (ways.empty()) ways.emplace_back("use more devices, or a smaller model");
  return failed(fmt::format("pipeline {}, stage {}, {} (rank {})", place.pipeline, place.stage,
                            plan.cluster.nameOf(plan.usedDevices()[static_cast<std::size_t>(rank)]), rank),
                "ran out of memory: " + said.substr(0, said.find('\n')), fmt::format("{}", fmt::join(ways, ", or ")));
}

}  // namespace evenkeel
