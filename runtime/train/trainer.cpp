// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/train/trainer.h"

#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/job/process.h"
#include "runtime/train/pipeline_runner.h"

namespace evenkeel {
namespace {

/// The tp group of a rank; none where it is alone.
TensorParallel groupOf(const Plan& plan, const RankPlace& place, Comm& comm) {
  const Stage& stage = plan.pipelines[place.pipeline].stages[place.stage];
  if (stage.tp == 1) return {};
  const std::vector<int> ranks = ranksOf(plan, stage);
  const auto first = ranks.begin() + place.replica * stage.tp;
  return {comm, {first, first + stage.tp}, place.shard};
}

/// What shortens a gradient of this norm to at most `longest`; 0: any is allowed.
double clipScale(double longest, double norm) { return longest > 0 && norm > longest ? longest / norm : 1.0; }

/// Where the time of one iteration went. The parts are disjoint and, but for some bookkeeping, sum to `iteration`.
struct StepTimes {
  Seconds iteration;
  Seconds compute;  // forwards and backwards, throttling included
  Seconds peer;     // waiting for tensors of the neighbouring stages
  Seconds bubble;   // idle otherwise until every rank was done with its forwards and backwards
  Seconds sync;     // summing gradients, and their norm
  Seconds optimizer;
};

class Trainer {
 public:
  Trainer(const Job& job, Comm& comm, const ByteSamples& samples, EventWriter& events)
      : job_(job),
        comm_(comm),
        events_(events),
        place_(rankPlaces(job.plan)[static_cast<std::size_t>(comm.rank())]),
        map_(blockMap(job.plan)),
        regions_(syncRegions(map_, comm.rank())),
        group_(groupOf(job.plan, place_, comm)),
        parameters_(map_, comm.rank(), place_.shard, job.run.seed),
        clock_(deviceType().speed),
        model_(job.plan.model, stage(), parameters_, group_, {.probability = job.run.dropout, .seed = job.run.seed}),
        runner_(job.plan, place_, model_, samples, comm, clock_),
        everyone_(static_cast<std::size_t>(comm.worldSize())) {
    std::iota(everyone_.begin(), everyone_.end(), 0);
  }

  /// Connects the holder sets of this rank's blocks, all ranks in the same order, then its tp group.
  Result<void> connect() {
    for (const SyncRegion& region : regions_) {
      if (auto joined = comm_.join(map_.holderSets[region.holderSet]); !joined) return joined;
    }
    return group_.size() > 1 ? comm_.join(group_.sortedRanks()) : Result<void>();
  }

  /// One iteration; `step` is 0-based.
  Result<void> step(std::int64_t step) {
    StepTimes times;
    const auto start = SteadyClock::now();
    const auto outcome = runner_.run(step);
    if (!outcome) return outcome.error();
    const auto lossSum = sumOverRanks(outcome->lossSum);
    if (!lossSum) return lossSum.error();
    times.compute = clock_.takeTotal();
    times.peer = outcome->peerWait;
    times.bubble = {std::max(0.0, (secondsSince(start) - times.compute - times.peer).value)};
    const double loss = *lossSum / static_cast<double>(tokens());
    if (auto finite = checkFinite("loss", loss, outcome->lossSum, step); !finite) return finite;

    const auto syncStart = SteadyClock::now();
    const auto norm = syncGradients();
    if (!norm) return norm.error();
    times.sync = secondsSince(syncStart);
    if (auto finite = checkFinite("norm of the gradient", *norm, *norm, step); !finite) return finite;

    const Run& run = job_.run;
    const double rate = run.learningRate.at(step, run.steps);
    clock_.run([&] {
      parameters_.update({.learningRate = rate,
                          .beta1 = run.beta1,
                          .beta2 = run.beta2,
                          .epsilon = run.epsilon,
                          .weightDecay = run.weightDecay,
                          .gradientScale = clipScale(run.gradientClip, *norm),
                          .step = step + 1});
    });
    times.optimizer = clock_.takeTotal();
    times.iteration = secondsSince(start);
    report(step, loss, *norm, rate, times);
    return {};
  }

 private:
  const Stage& stage() const { return job_.plan.pipelines[place_.pipeline].stages[place_.stage]; }
  const DeviceType& deviceType() const { return job_.plan.cluster.typeOf(stage().devices.front()); }
  std::int64_t tokens() const { return job_.plan.training.globalBatch * job_.plan.training.sequenceLength; }

  Result<double> sumOverRanks(double own) {
    const at::Tensor sum = at::full({1}, own, at::kDouble);
    if (auto done = comm_.allReduceSum(sum, everyone_); !done) return done.error();
    return sum.item<double>();
  }

  /// Sums the gradients of every holder set; returns the norm of the whole model's gradient.
  Result<double> syncGradients() {
    parameters_.collectGradients();
    for (const SyncRegion& region : regions_) {
      const at::Tensor part = parameters_.gradients().narrow(0, region.offset, region.elements);
      if (auto done = comm_.allReduceSum(part, map_.holderSets[region.holderSet]); !done) return done.error();
    }
    const auto squares = sumOverRanks(parameters_.sumOfOwnSquares());
    if (!squares) return squares.error();
    return std::sqrt(*squares);
  }

  /// `own`: this rank's part. A rank whose part is finite is a victim of one whose part is not.
  Result<void> checkFinite(const char* what, double total, double own, std::int64_t step) const {
    if (std::isfinite(total)) return {};
    const std::string text = fmt::format("the {} of step {} is {}", what, step + 1, total);
    if (std::isfinite(own)) return unreachable("another rank", text);
    return failed("training", text, "lower the learning rate");
  }

  void report(std::int64_t step, double loss, double norm, double rate, const StepTimes& times) {
    events_.write("step", {{"step", step + 1},
                           {"loss", loss},
                           {"tokens", tokens()},
                           {"iteration_ms", milliseconds(times.iteration)},
                           {"compute_ms", milliseconds(times.compute)},
                           {"p2p_ms", milliseconds(times.peer)},
                           {"bubble_ms", milliseconds(times.bubble)},
                           {"sync_ms", milliseconds(times.sync)},
                           {"optimizer_ms", milliseconds(times.optimizer)},
                           {"peak_bytes", peakResident().value},
                           {"grad_norm", norm},
                           {"learning_rate", rate}});
  }

  const Job& job_;
  Comm& comm_;
  EventWriter& events_;
  RankPlace place_;
  BlockMap map_;
  std::vector<SyncRegion> regions_;
  TensorParallel group_;
  Parameters parameters_;
  ComputeClock clock_;
  StageModel model_;
  PipelineRunner runner_;
  std::vector<int> everyone_;
};

}  // namespace

Result<void> train(const Job& job, Comm& comm, const ByteSamples& samples, EventWriter& events,
                   std::atomic<std::int64_t>& lastStep) {
  Trainer trainer(job, comm, samples, events);
  if (auto connected = trainer.connect(); !connected) return connected;
  for (lastStep = 0; lastStep < job.run.steps; ++lastStep) {
    if (auto done = trainer.step(lastStep.load()); !done) return done;
  }
  return {};
}

}  // namespace evenkeel
