// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/search/optimal/recompute_steps.h"

namespace evenkeel::optimal {

/// One way to run a replica of a stage.
struct StageOption {
  int kind = 0, tp = 1;          // kind as of CostModel
  std::int64_t samples = 1;      // of a micro-batch on this replica: its time and memory are those of so many
  std::int64_t mostSamples = 1;  // and its devices may stand for up to so many (a class of the bound; else the same)
};

/// Something that pipelines share: the devices of a kind, or the tp groups of at least `level` that its nodes hold, in devices.
/// Where a group of tp >= s takes s x floor(tp / s) devices, all groups fit into the nodes only if for every s their sum is at
/// most s x sum_nodes floor(devices / s); for powers of two, largest first, that is enough (optimal.md 1).
struct Resource {
  int kind = 0, level = 1;
  int amount = 0;
  [[nodiscard]] int usedBy(const StageOption& option) const { return option.kind == kind ? option.tp / level * level : 0; }
};
/// Every level that is scarcer than the devices themselves. `devices` are those that may be used.
[[nodiscard]] std::vector<Resource> resourcesOf(const CostModel& model, std::span<const DeviceId> devices);

/// What the options stand for.
enum class Purpose {
  Plan,   // stages that are built: whole units recompute, memory as charged
  Bound,  // no valid stage is faster: units recompute in part, state sharded over all devices, sends over the best link
};

/// Least time of stages of consecutive units, by option and number of micro-batches in flight. All layers are alike, so a stage
/// is its number of units, whether it begins with an attention or an MLP block, and whether it has the embedding or the head.
class StageOptions {
 public:
  struct Space {
    Purpose purpose = Purpose::Plan;
    std::vector<DeviceId> devices;  // that may be used
    std::vector<int> kinds, tps;
    std::vector<std::pair<std::int64_t, std::int64_t>> samples;  // classes [first, second] of samples of a replica
    int holders = 1;                                             // of every unit: ZeRO shards over them
    int exchangers = 1;                                          // as many, or fewer: ZeRO-2 needs more workspace with more of them
    bool mayRecompute = true;
  };
  StageOptions(const CostModel& model, Space space);

  [[nodiscard]] const std::vector<StageOption>& options() const { return options_; }
  [[nodiscard]] const Space& space() const { return space_; }
  [[nodiscard]] int unitCount() const { return unitCount_; }

  /// Forward + backward in seconds, without the send, of 1, 2, ... units; nondecreasing, as many as fit.
  struct Times {
    std::array<std::span<const double>, 2> inner;  // [1]: begins with an attention block, [0]: with an MLP block; no head
    std::span<const double> first;                 // begins with the embedding; no head
    std::span<const double> last;                  // ends with the head; no embedding. Only for one micro-batch in flight
    double alone = 0;                              // the whole model; infinite if it does not fit. As `last`
  };
  /// By option. Computed at the first question, thread-safe. O(options x units).
  [[nodiscard]] const std::vector<Times>& times(int inFlight) const;

  /// Forward alone.
  [[nodiscard]] double forward(std::size_t option, UnitRange units) const;
  /// Forward and backward without recomputation.
  [[nodiscard]] double work(std::size_t option, UnitRange units) const;
  /// That each device of the stage stores.
  [[nodiscard]] std::int64_t parameters(std::size_t option, UnitRange units) const;
  [[nodiscard]] double send(std::size_t option) const { return costs_[option].send; }

  /// Time of the stage of `units`; infinite if it does not fit. Where all micro-batches are in flight, a smaller last one counts as a
  /// part.
  [[nodiscard]] double time(std::size_t option, UnitRange units, double inFlight) const;
  /// The recomputation that `time` stands for (Purpose::Plan).
  [[nodiscard]] std::vector<Recompute> recompute(std::size_t option, UnitRange units, double inFlight) const;

 private:
  struct Costs {
    std::array<UnitCost, 4> units;        // by UnitKind, nothing recomputed
    std::array<std::int64_t, 4> fixed{};  // bytes of parameters and their state, by UnitKind
    std::array<std::int64_t, 4> parameters{};
    std::int64_t fixedTied = 0;  // too much of that where one stage holds both ends of a tied embedding
    std::array<std::int64_t, 4> exchange{};  // what ZeRO-2 sends of a unit at once
    std::int64_t wholeTied = 0;              // gradients of a tied embedding that it does not share, in a stage with one of its ends
    std::int64_t reserved = 0, capacity = 0, boundary = 0;
    std::vector<RecomputeMixes> mixes;
    double send = 0;
  };
  using Counts = std::array<int, 4>;  // units by kind
  /// How far the steps of costs.mixes[mixes] are taken: all before `step`, and that one for `units` units.
  struct Mix {
    std::size_t mixes = 0;
    std::size_t step = 0;
    int units = 0;
    double seconds = 0;
  };
  [[nodiscard]] Counts countsOf(UnitRange units) const;
  [[nodiscard]] bool takeSteps(const Costs& costs, const Counts& counts, double inFlight, bool alone, Mix& mix) const;
  [[nodiscard]] bool mixOf(const Costs& costs, const Counts& counts, double inFlight, bool alone, Mix& mix) const;
  [[nodiscard]] double timeOf(const Costs& costs, const Counts& counts, double inFlight, bool alone) const;
  [[nodiscard]] Costs costsOf(const StageOption& option) const;
  [[nodiscard]] double sendOf(const StageOption& option) const;

  const CostModel& model_;
  Space space_;
  int unitCount_;
  std::vector<std::map<int, int>> counts_;  // [node]: devices that may be used, by kind
  std::vector<StageOption> options_;
  std::vector<Costs> costs_;
  struct Row {
    std::once_flag once;
    std::vector<double> values;  // of all options, one block: thousands of small ones take long to give back
    std::vector<Times> times;
  };
  void computeTimes(int inFlight, Row& row) const;
  mutable std::deque<Row> rows_;  // by micro-batches in flight - 1
};

}  // namespace evenkeel::optimal
