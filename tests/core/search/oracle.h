// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "core/cost/cost_model.h"
#include "core/cost/pipeline_time.h"
#include "core/plan/problem.h"
#include "core/profile/analytic_profile.h"

namespace evenkeel {

/// Every plan of a tiny problem, of its own making: which devices make a pipeline and in which order of stages, tp x dp (replicas of
/// unlike types in one stage too, those of one type and node side by side, each with a sample at least), cuts at units, micro-batches,
/// local batches, and in each stage the recomputation of nothing, of one kind of op or of everything. Shares are as even as possible.
/// Devices of one type in one node are the same device. Only what cannot be as fast as is asked is left out.
class Oracle {
 public:
  /// `problem` must outlive it.
  explicit Oracle(const Problem& problem);

  enum class Measure {
    ClosedForm,  // of the slowest pipeline; sync and optimizer left out
    Reported,    // iterationTime
  };
  struct Found {
    Seconds time;
    std::vector<Pipeline> pipelines;
  };
  /// The fastest plan that takes less than `limit`. Nothing: there is none.
  [[nodiscard]] std::optional<Found> fasterThan(Seconds limit, Measure measure);
  /// Plans that were evaluated whole.
  [[nodiscard]] long evaluated() const { return evaluated_; }
  [[nodiscard]] const CostModel& model() const { return model_; }

 private:
  using Counts = std::vector<int>;  // devices by class
  struct Class {
    int node = 0, kind = 0;
    std::vector<DeviceId> devices;
  };
  /// A stage but for its units.
  struct Shape {
    int tp = 1;
    std::vector<int> replicas;  // their classes
    Counts uses;
    [[nodiscard]] int dp() const { return static_cast<int>(replicas.size()); }
  };
  struct Part {
    std::size_t shape = 0;
    UnitRange units;
  };
  /// A pipeline but for its local batch. Memory as if everything else were holders of its units.
  struct Structure {
    std::vector<Part> parts;
    int microBatch = 1, mostMicroBatches = 1;
    Counts uses;
    std::int64_t samples = 0;  // that it trains in less than the limit
    /// With fewer it is listed with fewer micro-batches, or with smaller ones.
    [[nodiscard]] std::int64_t leastSamples() const {
      return mostMicroBatches == 1 ? microBatch : std::int64_t{mostMicroBatches - 1} * microBatch + 1;
    }
  };
  /// Times and memory of a part for a number of samples, by choice of recomputation.
  struct PartCost {
    struct Choice {
      Seconds forward, backward;
      std::vector<std::pair<Bytes, Bytes>> memory;  // saved and transient, by replica
      std::vector<Bytes> boundary;
    };
    std::vector<Choice> choices;
    std::vector<std::size_t> fastestFirst;
  };
  struct Search;

  void addShapes();
  [[nodiscard]] Seconds timeOfUnit(int kind, int tp, int share, UnitKind unit) const;
  [[nodiscard]] std::vector<std::int64_t> mostByWork(Seconds limit) const;
  [[nodiscard]] std::vector<Seconds> leastInFront(int microBatch) const;
  [[nodiscard]] const PartCost& costOf(const Part& part, int microBatch, int samples);
  [[nodiscard]] Seconds sendBetween(std::size_t from, std::size_t to, int microBatch, int samples);
  /// Micro-batches whose activations a stage holds at once, and how many samples the last of them has where all there are are held.
  struct Held {
    int count = 1, last = 0;
  };
  [[nodiscard]] static Held heldOf(std::int64_t stagesBehind, std::int64_t microBatches, int microBatch, std::int64_t samples);
  /// The choice that takes least time and may fit; nothing fits. `isEndless`: whether all pipelines have one stage; nothing: the plan is
  /// not known yet, and what its other pipelines cost in memory is left out. Weights that others cut elsewhere are left out always.
  [[nodiscard]] std::optional<std::size_t> choiceOf(const Part& part, int microBatch, Held held, bool isAlone,
                                                    const std::vector<int>& holders, std::optional<bool> isEndless = {});
  [[nodiscard]] Stage stageOf(const Part& part, Counts& used) const;
  void recompute(Stage& stage, std::size_t choice) const;
  void extend(Search& search, int unit);
  void finishStructure(Search& search);
  [[nodiscard]] std::optional<PipelineTimes> timesOf(const Structure& structure, std::int64_t samples);
  [[nodiscard]] Seconds afterwards(const Structure& structure, bool isAlone) const;
  void combine(Search& search, std::size_t first, Counts left, std::int64_t samples, std::vector<std::size_t>& chosen);
  void evaluateSplits(Search& search, const std::vector<std::size_t>& chosen);
  void evaluate(Search& search, const std::vector<const Structure*>& structures, const std::vector<std::int64_t>& samples);

  const Problem& problem_;
  AnalyticProfile profile_;
  CostModel model_;
  std::int64_t batch_;
  int unitCount_, deviceCount_ = 0;
  std::vector<Class> classes_;
  Counts all_;
  std::vector<Shape> shapes_;
  std::vector<OpSet> recomputations_;
  std::map<std::tuple<std::size_t, int, int, int, int>, PartCost> costs_;
  std::map<std::tuple<std::size_t, std::size_t, int, int>, Seconds> sends_;
  long evaluated_ = 0;
};

}  // namespace evenkeel
