// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/model/training.h"

namespace evenkeel {

/// Half-open range of units [first, last).
struct UnitRange {
  int first = 0, last = 0;
  bool operator==(const UnitRange&) const = default;
  [[nodiscard]] int size() const { return last - first; }
};

/// Layers in a range: half a layer each for an attention and an MLP unit (#L of the paper's Table 3), whole ones of a table.
[[nodiscard]] double layersIn(const Model& model, UnitRange units);

/// Ops of the units in a range that are dropped in forward and computed again in backward.
struct Recompute {
  UnitRange units;
  std::vector<Op> ops;
  bool operator==(const Recompute&) const = default;
};

/// Memory of a stage's fullest device. The parts sum to total.
struct MemoryUse {
  Bytes weights, gradients, optimizer, activations, transient, reserved;
  Bytes capacity;  // of that device, after the reserve
  bool operator==(const MemoryUse&) const = default;
  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + transient + reserved; }
};

/// Of one stage, for a full micro-batch.
struct StagePrediction {
  Seconds forward, backward;  // backward includes recomputation; both include collectives of tp
  Seconds send;               // one direction to the next stage; 0 for the last
  int inFlight = 0;           // micro-batches whose activations are held at once
  MemoryUse memory;
  bool operator==(const StagePrediction&) const = default;
};

struct Stage {
  std::vector<DeviceId> devices;  // tp * dp; each tp group is one type, consecutive, inside one node
  int tp = 1, dp = 1;
  std::vector<int> shares;  // samples of a full micro-batch per replica; empty: as even as possible
  UnitRange units;
  std::vector<Recompute> recompute;
  std::optional<StagePrediction> predicted;
  Json extra;
  bool operator==(const Stage&) const = default;

  /// shares, or the even split of `microBatch` over dp (larger ones first) when the plan leaves it open.
  [[nodiscard]] std::vector<int> sharesOf(int microBatch) const;
};

/// Samples of each replica when `samples` of a micro-batch arrive: the stage's shares, scaled down for a smaller last micro-batch
/// (floor, then one more each to the largest remainders, earlier replicas first).
[[nodiscard]] std::vector<int> replicaShares(const Stage& stage, int microBatch, int samples);

struct Pipeline {
  std::int64_t localBatch = 0;  // samples an iteration
  int microBatch = 1;           // samples; the last one may be smaller (ragged)
  std::vector<Stage> stages;
  std::optional<Seconds> predictedTime;
  double bubbleFraction = 0;  // with predictedTime
  Json extra;
  bool operator==(const Pipeline&) const = default;

  [[nodiscard]] std::int64_t microBatchCount() const { return (localBatch + microBatch - 1) / microBatch; }
  /// Samples of micro-batch m; only the last may differ.
  [[nodiscard]] int samplesOf(std::int64_t m) const;
};

/// Of the whole plan. iteration = pipelines (simulated) + sync + optimizer, less what overlaps.
struct PlanPrediction {
  Seconds iteration, pipeline, sync, optimizer;
  double samplesPerSecond = 0, tokensPerSecond = 0;
  double mfu = 0;      // model FLOP/s over the sum of the dense peaks of all devices of the cluster
  Seconds lowerBound;  // no valid plan of the problem is reported faster; 0: not known
  double error = 0;    // fraction that predictions of this kind were off against measurements; 0: not known
  bool operator==(const PlanPrediction&) const = default;
  /// 1 - lowerBound / iteration.
  [[nodiscard]] double gap() const { return lowerBound.value > 0 ? 1.0 - lowerBound / iteration : 1.0; }
};

/// A whole launchable plan: what is trained, on what, and how it is laid out. Pure data.
struct Plan {
  Cluster cluster;
  Model model;
  Training training;
  std::vector<Pipeline> pipelines;
  std::optional<PlanPrediction> predicted;
  Json search;               // how it was found (planner, options, counters ...); null when written by hand
  std::string inputsSha256;  // of cluster, model and training when it was made; empty when written by hand
  Json extra;
  bool operator==(const Plan&) const = default;

  [[nodiscard]] std::vector<DeviceId> usedDevices() const;  // sorted; also the order of ranks
  [[nodiscard]] std::vector<DeviceId> idleDevices() const;  // sorted
};

/// Hash of what a plan depends on; differs from plan.inputsSha256 when the plan is stale.
[[nodiscard]] std::string inputsHash(const Cluster& cluster, const Model& model, const Training& training);

inline constexpr std::string_view kPlanFormat = "evenkeel.plan/1";

/// Reads shape only: an invalid plan (overlapping stages, lost samples) is read and left to violations().
/// Unknown devices and ops are errors here.
[[nodiscard]] Result<Plan> parsePlan(const Json& json, const std::string& source);
[[nodiscard]] Result<Plan> loadPlan(const std::filesystem::path& file);
[[nodiscard]] Json toJson(const Plan& plan);

}  // namespace evenkeel
