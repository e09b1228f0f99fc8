// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/plan/plan.h"

namespace evenkeel {

/// What a planner is given: everything that the optimum depends on, besides the profile.
struct Problem {
  Cluster cluster;
  Model model;
  Training training;
  bool operator==(const Problem&) const = default;
};

/// What the command line or the window leaves open; the rest comes from the model and the cluster (architecture.md, Defaults):
/// sequence = the model's context; bf16 where every type has it, else fp16, on cpu fp32; zero 1, or 0 where the runtime that
/// runs these devices lacks it.
struct TrainingChoice {
  std::optional<std::int64_t> sequenceLength, globalBatch;
  std::optional<Precision> precision;
  std::optional<int> zeroStage;
  std::optional<GradientSync> gradientSync;
  std::optional<AttentionKernel> attention;
  bool operator==(const TrainingChoice&) const = default;
};

/// Global batch when nothing is said.
inline constexpr std::int64_t kDefaultGlobalBatch = 64;

/// Why a device of the type cannot run the model: it lacks the precision, or a layer of a table has neither a time for it nor
/// FLOPs.
struct Obstacle {
  std::string what, remedy;
};
[[nodiscard]] std::optional<Obstacle> obstacleTo(const Model& model, Precision precision, const DeviceType& type);

[[nodiscard]] Training resolveTraining(const TrainingChoice& choice, const Cluster& cluster, const Model& model);

}  // namespace evenkeel
