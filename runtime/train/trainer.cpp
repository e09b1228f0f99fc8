// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/train/trainer.h"

#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "runtime/train/checkpointing.h"
#include "runtime/train/holder_sync.h"
#include "runtime/train/pipeline_runner.h"
#include "runtime/train/unit_exchange.h"

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
  Seconds sync;     // summing gradients, as far as nothing hid it, and their norm
  Seconds optimizer;
  Seconds cpu;         // that the process has used, all of its threads
  Seconds computeCpu;  // its part in forwards, backwards and the optimizer; the rest is what the runtime costs
};

class Trainer final : BackwardObserver {
 public:
  Trainer(const Job& job, Comm& comm, const TokenSamples& samples, EventWriter& events, const ComputeDevice& device)
      : job_(job),
        device_(device),
        comm_(comm),
        events_(events),
        place_(rankPlaces(job.plan)[static_cast<std::size_t>(comm.rank())]),
        map_(blockMap(job.plan)),
        sync_(map_, job.plan, comm, device.place),
        group_(groupOf(job.plan, place_, comm)),
        parameters_(parametersOf()),
        overlapped_(overlappedRegions()),
        alone_(rangesBetween()),
        clock_(deviceType().speed, device.synchronize),
        trace_(job.run.traceSteps),
        model_(job.plan.model, stage(), parameters_, group_, {.probability = job.run.dropout, .seed = job.run.seed, .byTensors = !device.isHost}, precision()),
        runner_(job.plan, place_, model_, samples, comm, clock_, trace_, device.place),
        checkpointing_(job, map_, parameters_, comm, events),
        everyone_(static_cast<std::size_t>(comm.worldSize())) {
    std::iota(everyone_.begin(), everyone_.end(), 0);
    if (job.plan.training.zeroStage >= 2) exchange_.emplace(job.plan, sync_, parameters_, comm);
    if (precision() == Precision::Fp16) lossScale_.value = LossScale::kFirst;
  }

  /// Opens the lines that tensors will take, connects the holder sets of this rank's blocks, all ranks in the same order, then its tp
  /// group.
  Result<void> connect() {
    std::vector<Line> lines = runner_.lines();
    for (const Line& line : sync_.lines()) lines.push_back(line);
    if (exchange_) {
      for (const Line& line : exchange_->lines()) lines.push_back(line);
    }
    if (auto opened = comm_.open(std::move(lines)); !opened) return opened;
    if (auto joined = sync_.connect(); !joined) return joined;
    return group_.size() > 1 ? comm_.join(group_.sortedRanks()) : Result<void>();
  }

  /// One iteration; `step` is 0-based.
  Result<void> step(std::int64_t step) {
    StepTimes times;
    const auto start = SteadyClock::now();
    const Seconds cpuStart = processCpuTime();
    trace_.begin(step + 1);
    if (exchange_) exchange_->beginStep();
    const auto outcome = runner_.run(step, lossScale_.value, *this);
    if (!outcome) return outcome.error();
    times.compute = clock_.takeTotal();
    if (exchange_) {
      const Seconds inCompute = exchange_->takeTime();
      times.compute -= inCompute;
      times.sync += inCompute;
    }
    const auto restStart = SteadyClock::now();
    if (auto started = startRestOfSync(); !started) return started;  // while the ranks wait for each other
    times.sync += secondsSince(restStart);
    trace_.add(Span::Kind::Sync, restStart);
    const auto waitStart = SteadyClock::now();
    const auto lossSum = sumOverRanks(outcome->lossSum);
    if (!lossSum) return lossSum.error();
    trace_.meet();
    trace_.add(Span::Kind::Wait, waitStart);
    times.peer = outcome->peerWait;
    times.bubble = {std::max(0.0, (secondsSince(start) - times.compute - times.peer - times.sync).value)};
    const double loss = *lossSum / static_cast<double>(tokens());
    if (auto finite = checkFinite("loss", loss, outcome->lossSum, step); !finite) return finite;

    const auto syncStart = SteadyClock::now();
    const auto norm = finishSync();
    if (!norm) return norm.error();
    times.sync += secondsSince(syncStart);
    trace_.add(Span::Kind::Sync, syncStart);
    if (precision() == Precision::Fp16 && !std::isfinite(*norm)) return skip(step, loss, start, cpuStart, times);
    if (auto finite = checkFinite("norm of the gradient", *norm, *norm, step); !finite) return finite;

    const Run& run = job_.run;
    const double rate = run.learningRate.at(step, run.steps);
    const auto updateStart = SteadyClock::now();
    clock_.run([&] {
      parameters_.update({.learningRate = rate,
                          .beta1 = run.beta1,
                          .beta2 = run.beta2,
                          .epsilon = run.epsilon,
                          .weightDecay = run.weightDecay,
                          .gradientScale = clipScale(run.gradientClip, *norm) / lossScale_.value,
                          .step = step + 1 - lossScale_.skipped});
    });
    trace_.add(Span::Kind::Optimizer, updateStart);
    const auto gatherStart = SteadyClock::now();
    if (auto done = sync_.gatherValues(parameters_.values()); !done) return done;
    times.sync += secondsSince(gatherStart);
    trace_.add(Span::Kind::Sync, gatherStart);
    const auto finishStart = SteadyClock::now();
    clock_.run([&] { parameters_.finishUpdate(); });
    trace_.add(Span::Kind::Optimizer, finishStart);
    times.optimizer = clock_.takeTotal();
    times.iteration = secondsSince(start);
    times.cpu = processCpuTime() - cpuStart;
    times.computeCpu = clock_.takeCpu();
    report(step, loss, *norm, rate, times);
    lossScale_.onGoodStep();
    return {};
  }

  /// Returns the number of finished steps: more than none after a resume.
  Result<std::int64_t> begin() {
    const auto begun = checkpointing_.begin(lossScale_);
    if (!begun || *begun == 0) return begun;
    parameters_.takeOverMasters();
    if (auto gathered = sync_.gatherValues(parameters_.values()); !gathered) return gathered.error();
    parameters_.finishUpdate();
    return begun;
  }
  /// After so many finished steps, if it is due: the loss of a token in the run's validation batches.
  Result<void> evaluate(std::int64_t finished, const TokenSamples* validation) {
    const Run::Evaluation& wish = job_.run.evaluation;
    if (wish.every == 0 || (finished % wish.every != 0 && finished != job_.run.steps)) return {};
    assert(validation != nullptr);
    double own = 0;
    for (std::int64_t batch = 0; batch < wish.batches; ++batch) {
      const auto lossSum = runner_.evaluate(batch, *validation);
      if (!lossSum) return lossSum.error();
      own += *lossSum;
    }
    const auto sum = sumOverRanks(own);
    if (!sum) return sum.error();
    (void)clock_.takeTotal();  // of no step
    (void)clock_.takeCpu();
    const double loss = *sum / static_cast<double>(wish.batches * tokens());
    if (comm_.rank() == 0) events_.write("evaluation", {{"step", finished}, {"loss", loss}});
    return checkFinite("validation loss", loss, own, finished - 1);
  }
  Result<void> save(std::int64_t finished) { return checkpointing_.afterStep(finished, lossScale_); }
  Result<void> finish() { return checkpointing_.finish(); }

 private:
  struct Overlapped {
    std::size_t index = 0;  // of HolderSync::overlappable()
    FlatRange range;
    int firstUnit = 0;
    bool isStarted = false;
  };

  /// An overflow anywhere: every rank sees it in the norm, and none updates anything.
  Result<void> skip(std::int64_t step, double loss, SteadyClock::time_point start, Seconds cpuStart, StepTimes& times) {
    clock_.run([&] { parameters_.finishUpdate(); });
    times.optimizer = clock_.takeTotal();
    times.iteration = secondsSince(start);
    times.cpu = processCpuTime() - cpuStart;
    times.computeCpu = clock_.takeCpu();
    report(step, loss, std::nullopt, 0, times);
    if (lossScale_.onOverflow()) return {};
    return failed("training",
                  fmt::format("the gradient of step {} overflows in fp16 even where the loss is not scaled", step + 1),
                  "lower the learning rate, or train in bf16");
  }

  Precision precision() const { return job_.plan.training.precision; }
  const Pipeline& pipeline() const { return job_.plan.pipelines[place_.pipeline]; }
  const Stage& stage() const { return pipeline().stages[place_.stage]; }
  const DeviceType& deviceType() const { return job_.plan.cluster.typeOf(stage().devices.front()); }
  Parameters parametersOf() const {
    const std::uint64_t seed = job_.run.seed;
    return sync_.isSharded() ? Parameters(map_, comm_.rank(), place_.shard, seed, precision(), sync_.ownership(), device_)
                             : Parameters(map_, comm_.rank(), place_.shard, seed, precision(), device_);
  }
  std::int64_t tokens() const { return job_.plan.training.globalBatch * job_.plan.training.sequenceLength; }

  /// What this rank holds from step to step.
  Json stateBytes() const {
    const Parameters::Size size = parameters_.size();
    return {{"weights", size.weights}, {"gradients", size.gradients}, {"optimizer", size.optimizer}, {"sync", syncCost().held}};
  }
  SyncCost syncCost() const {
    const SyncCost own = sync_.cost(), exchanged = exchange_ ? exchange_->cost() : SyncCost{};
    return {.calls = own.calls + exchanged.calls, .bytes = own.bytes + exchanged.bytes, .held = own.held + exchanged.held};
  }

  Result<double> sumOverRanks(double own) {
    const at::Tensor sum = at::full({1}, own, at::kDouble);
    if (auto done = comm_.allReduceSum(sum, everyone_); !done) return done.error();
    return sum.item<double>();
  }

  bool watches(int microBatch) const override { return exchange_ || microBatch + 1 == pipeline().microBatchCount(); }
  void onBackward(int microBatch) override {
    if (exchange_) exchange_->beginBackward(microBatch);
  }
  /// Starts to sum what is final once the backward of `unit` is done: of every region, all other units are behind it.
  void onUnitDone(int unit) override {
    if (exchange_) return exchange_->unitDone(unit);
    for (Overlapped& region : overlapped_) {
      if (region.firstUnit == unit) startRegion(region);
    }
  }
  void startRegion(Overlapped& region) {
    parameters_.collectGradients(region.range);
    sync_.start(region.index, parameters_);
    region.isStarted = true;
  }
  Result<void> startRestOfSync() {
    if (exchange_) {
      try {
        exchange_->endStep();
      } catch (const CommFailure& failure) {
        return failure.error;
      }
    }
    for (Overlapped& region : overlapped_) {
      if (!region.isStarted) startRegion(region);
      region.isStarted = false;
    }
    for (const FlatRange& range : alone_) parameters_.collectGradients(range);
    return sync_.startRest(parameters_);
  }

  /// For each region that can be summed while backward goes on: the first unit of this stage that adds to it. In the order in which
  /// they are started, the same on all ranks of a set.
  std::vector<Overlapped> overlappedRegions() const {
    std::unordered_map<std::string, int> firstUnit;  // by tensor
    for (int unit = stage().units.last - 1; unit >= stage().units.first; --unit) {
      for (const TensorSpec& tensor : tensorsOf(job_.plan.model, unit)) firstUnit[tensor.name] = unit;
    }
    std::vector<Overlapped> regions;
    for (const FlatRange& range : sync_.overlappable()) {
      Overlapped region{.index = regions.size(), .range = range, .firstUnit = stage().units.last};
      for (const TensorSlice& slice : parameters_.slices()) {
        if (slice.offset >= range.first && slice.offset < range.last)
          region.firstUnit = std::min(region.firstUnit, firstUnit.at(map_.tensors[slice.tensor].name));
      }
      regions.push_back(region);
    }
    std::ranges::stable_sort(regions, std::greater<>{}, &Overlapped::firstUnit);
    return regions;
  }
  /// What lies between them in the flat buffers.
  std::vector<FlatRange> rangesBetween() const {
    std::vector<FlatRange> ranges;
    std::int64_t next = 0;
    for (const FlatRange& range : sync_.overlappable()) {
      ranges.push_back({next, range.first});
      next = range.last;
    }
    ranges.push_back({next, parameters_.values().numel()});
    return ranges;
  }

  /// The sums; returns the norm of the whole model's gradient, without the scale of the loss.
  Result<double> finishSync() {
    if (auto done = sync_.finish(parameters_); !done) return done.error();
    const auto squares = sumOverRanks(parameters_.sumOfOwnSquares());
    if (!squares) return squares.error();
    return std::sqrt(*squares) / lossScale_.value;
  }

  /// `own`: this rank's part. A rank whose part is finite is a victim of one whose part is not.
  Result<void> checkFinite(const char* what, double total, double own, std::int64_t step) const {
    if (std::isfinite(total)) return {};
    const std::string text = fmt::format("the {} of step {} is {}", what, step + 1, total);
    if (std::isfinite(own)) return unreachable("another rank", text);
    return failed("training", text, "lower the learning rate");
  }

  /// Without a norm: a step that was skipped.
  void report(std::int64_t step, double loss, std::optional<double> norm, double rate, const StepTimes& times) {
    Json fields = {{"step", step + 1},
                   {"loss", loss},
                   {"tokens", tokens()},
                   {"iteration_ms", milliseconds(times.iteration)},
                   {"compute_ms", milliseconds(times.compute)},
                   {"p2p_ms", milliseconds(times.peer)},
                   {"bubble_ms", milliseconds(times.bubble)},
                   {"sync_ms", milliseconds(times.sync)},
                   {"optimizer_ms", milliseconds(times.optimizer)},
                   {"cpu_ms", milliseconds(times.cpu)},
                   {"compute_cpu_ms", milliseconds(times.computeCpu)},
                   {"peak_bytes", device_.peakOfAll().value},
                   {"tensor_bytes", device_.peakOfTensors().value},
                   {"state_bytes", stateBytes()},
                   {"sync_calls", syncCost().calls},
                   {"sync_bytes", syncCost().bytes},
                   {"grad_norm", norm.value_or(0)},
                   {"learning_rate", rate}};
    if (precision() == Precision::Fp16) {
      fields["loss_scale"] = lossScale_.value;
      fields["skipped"] = !norm;
    }
    events_.write("step", fields);
    trace_.write(events_);
  }

  const Job& job_;
  const ComputeDevice& device_;
  Comm& comm_;
  EventWriter& events_;
  RankPlace place_;
  BlockMap map_;
  HolderSync sync_;
  TensorParallel group_;
  Parameters parameters_;
  std::optional<UnitExchange> exchange_;  // with ZeRO-2
  std::vector<Overlapped> overlapped_;
  std::vector<FlatRange> alone_;  // of the flat buffers: what is no overlapped region
  ComputeClock clock_;
  StepTrace trace_;
  StageModel model_;
  PipelineRunner runner_;
  Checkpointing checkpointing_;
  std::vector<int> everyone_;
  LossScale lossScale_;
};

}  // namespace

Result<void> train(const Job& job, Comm& comm, const TokenSamples& samples, EventWriter& events,
                   std::atomic<std::int64_t>& lastStep, const TokenSamples* validation, const ComputeDevice& device) {
  Trainer trainer(job, comm, samples, events, device);
  if (auto connected = trainer.connect(); !connected) return connected;
  const auto begun = trainer.begin();
  if (!begun) return begun.error();
  lastStep = *begun;
  while (lastStep < job.run.steps) {
    if (auto done = trainer.step(lastStep.load()); !done) return done;
    ++lastStep;
    if (auto saved = trainer.save(lastStep.load()); !saved) return saved;
    if (auto evaluated = trainer.evaluate(lastStep.load(), validation); !evaluated) return evaluated;
  }
  return trainer.finish();
}

}  // namespace evenkeel
