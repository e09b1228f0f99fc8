// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/cost/cost_model.h"
#include "core/cost/simulator.h"
#include "core/cost/sync.h"
#include "core/plan/violations.h"

namespace evenkeel {

/// All that the cost model says of a plan.
struct Evaluation {
  /// Of shape, or, where the shape is right, of memory. Where the shape is wrong nothing below is filled, and the predictions
  /// that the plan came with are gone: they are of another plan.
  std::vector<Violation> violations;
  Plan plan;                                         // as given, with every `predicted` filled
  Seconds closedForm;                                // slowest pipeline by the closed form + sync, as if nothing hid it, + optimizer
  double bubbleFraction = 0;                         // waiting of all used devices until the slowest pipeline is done
  std::map<DeviceId, Bytes> peakBytes;               // of every used device
  std::vector<std::vector<StageActivity>> activity;  // [pipeline][stage]
  Timeline timeline;                                 // one lane per stage; empty unless asked for

  [[nodiscard]] bool valid() const { return violations.empty(); }
};

/// When each stage ends its last backward.
[[nodiscard]] StageEnds endsOf(const std::vector<std::vector<StageActivity>>& activity);

/// Of Plan::search: the bound by work in ms, where the planner proved more. It says under which profile that was.
inline constexpr const char* kWorkBoundField = "work_bound_ms";

/// Checks and predicts. Never fails: what is wrong with the plan stands in `violations`. The lower bound is that of the work, or
/// what the plan's planner proved of the same inputs and profile.
[[nodiscard]] Evaluation evaluate(const Plan& plan, const Profile& profile, bool withTimeline = true,
                                  const RuntimeTraits& runtime = evenkeelRuntime());
/// With what is already known: `lowerBound` of the problem and a model of the plan's own cluster, model and training.
[[nodiscard]] Evaluation evaluate(const CostModel& model, Plan plan, Seconds lowerBound, bool withTimeline);

/// The device that lacks most memory.
struct MemoryLack {
  std::size_t pipeline = 0, stage = 0, replica = 0;
  Bytes lack;  // above 0
};
[[nodiscard]] std::optional<MemoryLack> worstLack(const CostModel& model, std::span<const Pipeline> pipelines);

/// The reported iteration time alone, for searches: pipelines simulated (equal ones once) + sync + optimizer. The shape must be
/// valid.
[[nodiscard]] Seconds iterationTime(const CostModel& model, std::span<const Pipeline> pipelines);

}  // namespace evenkeel
