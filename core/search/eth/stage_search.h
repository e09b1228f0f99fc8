// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/cost/pipeline_time.h"
#include "core/search/stage_table.h"
#include "core/search/limits.h"

namespace evenkeel {

/// Devices of each usable type (the index is that of StageSearch::types).
using Composition = std::vector<int>;

/// What the stage search needs to know of one device type.
struct TypeFigures {
  int kind = 0;   // of CostModel: the one with the slowest intra link
  int count = 0;  // usable devices
  int mostPerNode = 0, leastPerNode = 0;
  LinkSpec intra, nic;       // slowest of its nodes
  bool nicPerDevice = true;  // of all its nodes
};

struct StageChoice {
  int type = 0, tp = 1, dp = 1;
  std::vector<LevelRange> parts;  // one or two ranges, adjacent, of this stage
  [[nodiscard]] UnitRange units() const { return {parts.front().units.first, parts.back().units.last}; }
};

/// A pipeline without its devices.
struct PipelineChoice {
  int microBatch = 1;
  std::vector<StageChoice> stages;
  /// T(M) = fill + (M - 1) * pace, fitted to the simulation at the local batch that it was made for.
  Seconds fill, pace;
  [[nodiscard]] Seconds time(std::int64_t microBatches) const { return fill + static_cast<double>(microBatches - 1) * pace; }
};

/// How long a configuration is looked for: an estimate ranks groupings, what is built deserves more.
enum class Care { Estimate, Thorough };

/// The best configuration of one pipeline (algorithms.md 5.1, 2 and 3): order of the types, tp and dp of each, micro-batch, cuts
/// and recomputation. Stages are cut by the least bottleneck that the memory allows; configurations are compared by the closed
/// form, the best few by simulation.
class StageSearch {
 public:
  StageSearch(const CostModel& model, const Limits& limits, const Recomputing& recomputing, std::function<bool()> stopped);

  [[nodiscard]] const std::vector<TypeFigures>& types() const { return types_; }
  [[nodiscard]] int typeOf(DeviceId device) const;

  /// `pipelines`: how many pipelines the plan has, at least (ZeRO shards over them). None: nothing fits, or stopped. Thread-safe.
  [[nodiscard]] std::optional<PipelineChoice> best(const Composition& composition, std::int64_t localBatch, int pipelines,
                                                   Care care);

  /// Gradient sync of the choice's fullest device among so many pipelines, about: its parameters over its node's way out.
  [[nodiscard]] Seconds syncEstimate(const PipelineChoice& choice, int pipelines) const;

  [[nodiscard]] StageTables& tables() { return tables_; }
  /// FLOP/s of a composition: its share of the batch at first.
  [[nodiscard]] double power(const Composition& composition) const;

 private:
  /// Stages of one type in a row.
  struct Run {
    int type = 0, tp = 1, dp = 1, stages = 0;
  };
  struct Attempt {
    std::vector<Run> runs;
    int microBatch = 1;
    Seconds leastFill, leastPace, atLeast;  // by the closed form, memory aside
  };
  /// Stages cut for one attempt.
  struct Cut;

  /// False: not even the parameters fit into all of the composition's memory.
  [[nodiscard]] bool mayHold(const Composition& composition, int pipelines) const;
  [[nodiscard]] std::vector<Attempt> attempts(const Composition& composition, std::int64_t localBatch);
  void addRuns(const Composition& composition, const std::vector<int>& order, std::int64_t localBatch, std::vector<Run>& runs,
               std::vector<Attempt>& out);
  void addAttempts(const std::vector<Run>& runs, std::int64_t localBatch, std::vector<Attempt>& out);
  [[nodiscard]] Seconds sendTime(const Run& from, const Run& to, int samples) const;
  [[nodiscard]] std::optional<PipelineChoice> cutBest(const Attempt& attempt, std::int64_t localBatch, int pipelines,
                                                      Seconds limit, double tolerance);
  [[nodiscard]] PipelineTimes timesOf(const PipelineChoice& choice, std::int64_t localBatch);
  void fitToSimulation(PipelineChoice& choice, std::int64_t localBatch);

  const CostModel& model_;
  const Limits& limits_;
  StageTables tables_;
  std::function<bool()> stopped_;
  std::vector<TypeFigures> types_;
  std::vector<int> classOfType_;  // by index into Cluster::deviceTypes; -1: not usable
};

}  // namespace evenkeel
