// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/cost/cost_model.h"
#include "core/cost/pipeline_time.h"

namespace evenkeel {

/// Equal units of a stage: how many of one kind recompute the same ops.
struct UnitGroup {
  UnitKind kind = UnitKind::Attention;
  OpSet recomputed;
  int count = 0;
};

/// The units of a stage, equal ones together, in the order of their first unit. The shape must be valid. O(ranges of
/// recomputation).
[[nodiscard]] std::vector<UnitGroup> unitGroups(const Model& model, const Stage& stage);
/// Of some of its units.
[[nodiscard]] std::vector<UnitGroup> unitGroups(const Model& model, const Stage& stage, UnitRange units);

/// One micro-batch of `samples`: the slowest replica counts. `send` includes the regrouping where tp or dp differ: every rank of
/// a receiving tp group gets the whole residual tensor of its samples from one rank of each group that holds some of them.
/// Devices that send or receive several flows, nodes whose NIC is one for all devices, and switches with a limit in total carry
/// them one after the other. What other stages and pipelines send at that time is left out.
[[nodiscard]] StageTime stageTime(const CostModel& model, const Pipeline& pipeline, std::size_t stage, int samples);

/// The backward of some of the stage's units: the slowest replica counts.
[[nodiscard]] Seconds backwardTime(const CostModel& model, const Pipeline& pipeline, std::size_t stage, UnitRange units,
                                   int samples);

[[nodiscard]] PipelineTimes pipelineTimes(const CostModel& model, const Pipeline& pipeline);

}  // namespace evenkeel
