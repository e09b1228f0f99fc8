// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/cost/evaluate.h"

namespace evenkeel::gui {

/// Of one kind of op in one stage: in how many of its units it stands, and in how many of them it is computed again.
struct OpShare {
  int held = 0, recomputed = 0;
  bool operator==(const OpShare&) const = default;
};

/// A stage as people read it.
struct StageFacts {
  int pipeline = 0, stage = 0;  // of the first of equal pipelines
  QString devices;              // "4 × A100-80-SXM"
  QString deviceNames;          // "node-0/0 to 3"
  int typeIndex = 0;            // of its first device: gives the colour
  UnitRange units;
  double layers = 0;  // attention and MLP blocks, half a layer each
  bool hasEmbedding = false, hasHead = false;
  int tp = 1, dp = 1;
  std::optional<StagePrediction> predicted;
  std::array<OpShare, kOpCount> ops{};
  bool isBottleneck = false;

  [[nodiscard]] int recomputedOps() const;  // kinds that are recomputed anywhere
  [[nodiscard]] int heldOps() const;        // kinds that it holds
};

/// A pipeline, or several equal ones.
struct PipelineFacts {
  int first = 0, count = 1;
  std::int64_t localBatch = 0, microBatches = 0;
  int microBatch = 1, deviceCount = 0;
  std::optional<Seconds> time;
  double bubbleFraction = 0;
  std::vector<StageFacts> stages;
  [[nodiscard]] bool contains(int pipeline) const { return pipeline >= first && pipeline < first + count; }
};

/// A plan as the table, the cards and the texts show it: no widget enters. Neighbouring pipelines that differ only in which
/// devices of the same types they use are one.
struct PlanFacts {
  std::vector<PipelineFacts> pipelines;
  QString idle;            // "4 × T4"; empty: every device is used
  QString bottleneck;      // "pipeline 0, stage 1: 41 ms compute, 9 ms send a micro-batch"; empty: not predicted
  double worstMemory = 0;  // of the capacity of the fullest device; 0: not predicted

  [[nodiscard]] const StageFacts* find(int pipeline, int stage) const;
};

/// The shape of the plan must be valid. O(devices + units x ops).
[[nodiscard]] PlanFacts planFacts(const Plan& plan);

/// "2 × A100-80-SXM, 4 × T4", in the order of the cluster's types.
[[nodiscard]] QString deviceCounts(const Cluster& cluster, const std::vector<DeviceId>& devices);
/// Names of nodes of the devices, for the selection.
[[nodiscard]] std::set<std::string> machinesOf(const Plan& plan, const PipelineFacts& pipelines, int stage);

/// "Pipeline 2"; "Pipelines 0 to 7, each".
[[nodiscard]] QString placeText(const PipelineFacts& pipeline);
/// "9.5 layers", "embedding and 6 layers", in words.
[[nodiscard]] QString layersText(const StageFacts& stage);
/// "61.2 of 74.4 GiB, 82 %", with "nearly full" from 85 % and "full" from 95 % on.
[[nodiscard]] QString memoryText(const MemoryUse& memory);
/// The same with its parts, a line each.
[[nodiscard]] QString memoryDetail(const MemoryUse& memory);
/// "3 of 13 kinds of op recomputed: softmax, dropout; fc1 in 2 of 6 blocks"; "nothing recomputed".
[[nodiscard]] QString recomputeText(const StageFacts& stage);
/// All of a stage in a few lines, for tool tips and screen readers.
[[nodiscard]] QString stageText(const StageFacts& stage);

/// How full: below 85 % of the capacity, from 85 %, from 95 % on. Each has a sign besides its colour: "", "!", "!!".
enum class Fullness { Roomy, Tight, Full };
[[nodiscard]] Fullness fullness(const MemoryUse& memory);
[[nodiscard]] QString signOf(Fullness fullness);

}  // namespace evenkeel::gui
