// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <memory>
#include <shared_mutex>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/base/tuple_hash.h"
#include "core/cost/memory.h"

namespace evenkeel {

/// The levels that a table offers: those of each stage's own choice, or one set of ops for every unit of the plan.
struct Recomputing {
  bool perStage = false;
  OpSet everywhere;  // where it is not per stage
};

/// Units of a stage that recompute the ops of one level.
struct LevelRange {
  UnitRange units;
  int level = 0;
};

/// Time and memory of any stage on one kind of device with one tp and number of samples per replica: constant time per question,
/// because all layers are alike. Recomputation comes in levels. Per stage: 0 is none; each further level adds the run of ops that
/// frees most bytes per second of added time (algorithms.md 5.1, 3); the last one is everything. Else there is one level.
class StageTable {
 public:
  StageTable(const CostModel& model, int kind, int tp, std::int64_t samples, const Recomputing& recomputing);

  [[nodiscard]] int levelCount() const { return static_cast<int>(levels_.size()); }
  [[nodiscard]] OpSet ops(int level) const { return levels_[static_cast<std::size_t>(level)].ops; }
  [[nodiscard]] Seconds forward(std::span<const LevelRange> parts) const;
  [[nodiscard]] Seconds backward(std::span<const LevelRange> parts) const;
  [[nodiscard]] Seconds time(LevelRange part) const;  // forward + backward
  /// Forward and backward of one layer without recomputation, and of the cheaper kind of block.
  [[nodiscard]] Seconds layerTime() const;

  /// `holders`: devices that hold the same slice of each unit, at least; `alone`: the pipeline has one stage.
  [[nodiscard]] MemoryUse memory(std::span<const LevelRange> parts, int inFlight, int holders, bool alone) const;
  [[nodiscard]] bool fits(std::span<const LevelRange> parts, int inFlight, int holders, bool alone) const;

  /// The largest `last` <= `most` for which [first, last) takes at most `pace` and fits at `level`; `first` if there is none.
  [[nodiscard]] int lastUnit(int first, int most, int level, Seconds pace, int inFlight, int holders, bool alone) const;

 private:
  struct Level {
    OpSet ops;
    std::array<UnitCost, 4> units;    // by UnitKind
    std::vector<Seconds> timeBefore;  // forward + backward of units [0, i)
  };
  void addLevels();
  [[nodiscard]] Level levelOf(OpSet ops) const;
  [[nodiscard]] std::array<int, 4> counts(UnitRange units) const;

  const CostModel& model_;
  int kind_, unitCount_;
  const OpCosts& costs_;
  std::vector<Level> levels_;
  std::array<std::int64_t, 4> parameters_;
  std::int64_t tied_;
};

/// Tables by (kind, tp, samples), made once. Thread-safe.
class StageTables {
 public:
  StageTables(const CostModel& model, const Recomputing& recomputing) : model_(model), recomputing_(recomputing) {}
  [[nodiscard]] const StageTable& of(int kind, int tp, std::int64_t samples);

 private:
  const CostModel& model_;
  Recomputing recomputing_;
  std::shared_mutex mutex_;
  std::unordered_map<std::tuple<int, int, std::int64_t>, std::unique_ptr<StageTable>, TupleHash> tables_;
};

}  // namespace evenkeel
