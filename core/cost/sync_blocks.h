// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <vector>

#include "core/cost/cost_model.h"

namespace evenkeel {

struct StageRef {
  std::size_t pipeline, stage;
  auto operator<=>(const StageRef&) const = default;
};
[[nodiscard]] inline const Stage& stageOf(std::span<const Pipeline> pipelines, const StageRef& ref) {
  return pipelines[ref.pipeline].stages[ref.stage];
}

/// Parameters whose gradients are summed over the same stages.
struct SyncBlock {
  std::int64_t parameters = 0;  // unsplit
  int tensors = 0;
  int firstUnit = 0;  // its backward is the last one that adds to the gradients
  std::vector<StageRef> holders;
};

/// Of the training's mode: block- and tensor-wise the units between two cuts of any pipeline, ascending, and then a tied
/// embedding; device-wise the union of what a connected set of stages holds. The shape must be valid. O(pipelines x cuts).
[[nodiscard]] std::vector<SyncBlock> syncBlocks(const CostModel& model, std::span<const Pipeline> pipelines);

}  // namespace evenkeel
