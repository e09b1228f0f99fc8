// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/cost/pipeline_time.h"
#include "core/search/optimal/plan_space.h"

namespace evenkeel::optimal {

/// Devices that are as good as each other: of one kind in one node.
struct DeviceSet {
  int node = 0, kind = 0;
  std::vector<DeviceId> devices;
};
using Counts = std::vector<int>;  // of devices, by set

/// A stage but for its units: replicas on sets, those of one set side by side; shares are as even as possible.
struct StageShape {
  int tp = 1;
  std::vector<std::size_t> sets;  // by replica
  Counts uses;
  [[nodiscard]] int dp() const { return static_cast<int>(sets.size()); }
};

/// A pipeline but for its devices and its local batch.
struct ListedPipeline {
  struct Stage {
    std::size_t shape = 0;
    UnitRange units;
  };
  std::vector<Stage> stages;
  int microBatch = 1;
  int mostInFlight = 1;  // its memory is that of so many micro-batches; with more stages than that it trains exactly so many
  Counts uses;
  std::int64_t samples = 0;  // that it trains within the limit, at most

  /// With fewer it is listed with fewer or with smaller micro-batches.
  [[nodiscard]] std::int64_t leastSamples() const {
    return mostInFlight == 1 ? microBatch : std::int64_t{mostInFlight - 1} * microBatch + 1;
  }
};

/// Every pipeline of a few devices, each micro-batch, each cut: depth first from the last stage, given up where what there is
/// takes too long. Not thread-safe.
class PipelineList {
 public:
  /// `space` must outlive it.
  explicit PipelineList(PlanSpace& space);

  struct Query {
    Measure measure = Measure::Schedule;  // Schedule: as simulated, with what sync and optimizer take at least
    double limit = 0;                     // seconds; less than that is wanted
    bool alone = false;                   // pipelines that train the whole batch, else those that train a part
    std::int64_t* stepsLeft = nullptr;    // gives up at 0
    std::function<bool()> stopped;
  };
  using OnPipeline = std::function<void(ListedPipeline&)>;
  void list(const Query& query, const OnPipeline& onPipeline);
  /// At best, as simulated; infinite: it does not fit.
  [[nodiscard]] double timeOf(const ListedPipeline& pipeline, std::int64_t samples);

  [[nodiscard]] const Counts& all() const { return all_; }
  /// Lists of counts up to all() have indices; smaller ones come first.
  [[nodiscard]] std::size_t indexOf(const Counts& counts) const;
  [[nodiscard]] std::vector<Counts> everyCount() const;

  /// The pipelines with samples on devices, recomputing what they must with so many holders; empty: they do not fit.
  [[nodiscard]] std::vector<Pipeline> placed(std::span<const ListedPipeline* const> pipelines, std::span<const std::int64_t> samples);

 private:
  struct Compute {
    double forward = 0, backward = 0;
  };
  struct Run;
  void addShapes();
  [[nodiscard]] std::vector<std::int64_t> mostSamplesIn(double limit);
  [[nodiscard]] long optionOf(int kind, int tp, int samples) const;
  /// Micro-batches that a stage holds at once; `last`: samples of the last of them.
  struct Held {
    int count = 1, last = 0;
  };
  /// Of a stage of which `samples` are asked; nothing: it does not fit, or was not planned for.
  [[nodiscard]] std::optional<Compute> computeOf(const ListedPipeline::Stage& stage, int microBatch, int samples, Held held);
  [[nodiscard]] static Held heldOf(std::int64_t stages, std::int64_t microBatches, int microBatch, std::int64_t samples);
  /// In micro-batches, by replica.
  [[nodiscard]] static std::vector<double> inFlightOf(int dp, int microBatch, Held held);
  [[nodiscard]] double stageTimeOf(std::size_t option, UnitRange units, double inFlight);
  [[nodiscard]] double sendBetween(std::size_t from, std::size_t to, int microBatch, int samples);
  [[nodiscard]] evenkeel::Stage stageOf(const ListedPipeline::Stage& stage, Counts& used) const;
  void extend(Run& run, int unit);
  void finish(Run& run);
  [[nodiscard]] std::optional<PipelineTimes> timesOf(const ListedPipeline& pipeline, std::int64_t samples);
  [[nodiscard]] double afterwards(const ListedPipeline& pipeline, bool isAlone) const;

  PlanSpace& space_;
  const CostModel& model_;
  const StageOptions& options_;  // as if all devices shared the state
  int unitCount_, deviceCount_;
  std::vector<DeviceSet> sets_;
  Counts all_;
  std::vector<StageShape> shapes_;
  std::map<std::tuple<int, int, std::int64_t>, std::size_t> optionOf_;  // (kind, tp, samples)
  std::vector<std::vector<double>> times_;                              // by option: of a stage, < 0: not known yet
  std::map<std::tuple<std::size_t, std::size_t, int, int>, double> sends_;
  std::vector<double> leastTimes_;  // of the whole batch, by index of the devices
};

}  // namespace evenkeel::optimal
