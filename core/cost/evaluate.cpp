// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <tuple>

#include "core/cost/bound.h"
#include "core/cost/memory.h"
#include "core/cost/stage_time.h"
#include "core/profile/op_work.h"
#include "core/profile/shown_error.h"

namespace evenkeel {
namespace {

/// Pipelines of equal times are simulated once.
class Simulations {
 public:
  struct Entry {
    PipelineTimes times;
    Simulation simulation;
    std::vector<Span> spans;
  };

  explicit Simulations(bool withSpans) : withSpans_(withSpans) {}

  const Entry& of(PipelineTimes times) {
    const auto found = entries_.find(times);
    if (found != entries_.end()) return found->second;
    Entry entry{times, {}, {}};
    entry.simulation = simulate(times, withSpans_ ? &entry.spans : nullptr);
    return entries_.emplace(std::move(times), std::move(entry)).first->second;
  }

 private:
  bool withSpans_;
  std::map<PipelineTimes, Entry> entries_;
};

/// Of each kind of source by the compute time that rests on it; every stage counts with one full micro-batch.
double shownErrorOf(const CostModel& model, const std::vector<Pipeline>& pipelines) {
  std::map<std::pair<int, ValueSource>, double> seconds;                     // by kind of device
  std::map<std::tuple<int, int, int>, std::array<double, kOpCount>> counts;  // by kind, tp, samples
  for (const Pipeline& pipeline : pipelines) {
    for (const Stage& stage : pipeline.stages) {
      const std::vector<int> shares = replicaShares(stage, pipeline.microBatch, pipeline.microBatch);
      for (int r = 0; r < stage.dp; ++r) {
        const int share = shares[static_cast<std::size_t>(r)];
        if (share == 0) continue;
        const int kind = model.kindOf(stage.devices[static_cast<std::size_t>(r * stage.tp)]);
        auto& ofOps = counts[{kind, stage.tp, share}];
        for (const UnitGroup& group : unitGroups(model.model(), stage)) {
          for (const Op op : opsOf(group.kind)) ofOps[static_cast<std::size_t>(op)] += group.count;
        }
      }
    }
  }
  for (const auto& [key, ofOps] : counts) {
    const auto& [kind, tp, share] = key;
    const OpCosts& costs = model.opCosts(kind, tp, share);
    for (std::size_t op = 0; op < ofOps.size(); ++op)
      seconds[{kind, costs[op].source}] += ofOps[op] * (costs[op].forward + costs[op].backward).value;
  }
  double sum = 0, weighted = 0;
  for (const auto& [key, time] : seconds) {
    sum += time;
    weighted += time * shownError(key.second, model.typeOfKind(key.first));
  }
  return sum > 0 ? weighted / sum : 0.0;
}

/// With what ZeRO-2 sends inside of the backward of all micro-batches but the last one.
PipelineTimes timesOf(const CostModel& model, const Pipeline& pipeline, std::size_t index, const StageEnds& exchanges) {
  PipelineTimes times = pipelineTimes(model, pipeline);
  if (exchanges.empty() || times.microBatches == 1) return times;
  for (std::size_t s = 0; s < times.full.size(); ++s) times.full[s].backward += exchanges[index][s];
  return times;
}

class Evaluator {
 public:
  Evaluator(const CostModel& model, Plan plan, bool withTimeline)
      : model_(model), withTimeline_(withTimeline), simulations_(withTimeline) {
    out_.plan = std::move(plan);
  }

  Evaluation run(Seconds lowerBound) {
    predictPipelines();
    predictMemory();
    predictPlan(lowerBound);
    if (withTimeline_) addSyncSpans();
    return std::move(out_);
  }

 private:
  void predictPipelines() {
    const StageEnds exchanges = exchangeTimes(model_, out_.plan.pipelines);
    for (std::size_t p = 0; p < out_.plan.pipelines.size(); ++p) {
      Pipeline& pipeline = out_.plan.pipelines[p];
      const Simulations::Entry& entry = simulations_.of(timesOf(model_, pipeline, p, exchanges));
      for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
        const StageTime& time = entry.times.full[s];
        pipeline.stages[s].predicted =
            StagePrediction{.forward = time.forward,
                            .backward = time.backward,
                            .send = time.send,
                            .inFlight = inFlightMicroBatches(s, pipeline.stages.size(), pipeline.microBatchCount()),
                            .memory = {}};
      }
      pipeline.predictedTime = entry.simulation.time;
      pipeline.bubbleFraction = entry.simulation.bubbleFraction;
      slowest_ = std::max(slowest_, entry.simulation.time);
      slowestClosedForm_ = std::max(slowestClosedForm_, closedForm(entry.times));
      out_.activity.push_back(entry.simulation.stages);
      if (withTimeline_) addLanes(p, entry.spans);
    }
  }

  void addLanes(std::size_t p, const std::vector<Span>& spans) {
    const int firstLane = static_cast<int>(out_.timeline.lanes.size());
    const Pipeline& pipeline = out_.plan.pipelines[p];
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      out_.timeline.lanes.push_back({placeOf(p, s), static_cast<int>(p), static_cast<int>(s)});
    }
    for (Span span : spans) {
      span.lane += firstLane;
      if (span.waitsForLane >= 0) span.waitsForLane += firstLane;
      out_.timeline.spans.push_back(span);
    }
  }

  void predictMemory() {
    const MemoryByReplica memory = memoryOf(model_, out_.plan.pipelines);
    for (std::size_t p = 0; p < memory.size(); ++p) {
      for (std::size_t s = 0; s < memory[p].size(); ++s) {
        Stage& stage = out_.plan.pipelines[p].stages[s];
        for (std::size_t d = 0; d < stage.devices.size(); ++d) {
          out_.peakBytes[stage.devices[d]] = memory[p][s][d / static_cast<std::size_t>(stage.tp)].total();
        }
        const std::size_t fullest = fullestReplica(memory[p][s]);
        stage.predicted->memory = memory[p][s][fullest];
        if (const Bytes lack = lackOf(memory[p][s][fullest]); lack > Bytes{}) addLack(p, s, fullest, lack);
      }
    }
  }

  void addLack(std::size_t p, std::size_t s, std::size_t replica, Bytes lack) {
    const Pipeline& pipeline = out_.plan.pipelines[p];
    const Stage& stage = pipeline.stages[s];
    const DeviceId device = stage.devices[replica * static_cast<std::size_t>(stage.tp)];
    const MemoryUse& use = stage.predicted->memory;
    std::string remedy;
    if (use.activations > lack && pipeline.microBatch > 1)
      remedy = fmt::format("train micro-batches of {}", pipeline.microBatch / 2);
    else if (use.activations > lack && stage.recompute.empty()) remedy = "recompute its attention";
    else if (stage.units.size() > 1) remedy = "move units to another stage";
    else remedy = "raise its tensor parallelism";
    out_.violations.push_back(
        {fmt::format("{}, {} {}", placeOf(p, s), out_.plan.cluster.typeOf(device).name, out_.plan.cluster.nameOf(device)),
         fmt::format("needs {:.2f} GiB of {:.2f}: lacks {:.2f} GiB", gib(use.total()), gib(use.capacity), gib(lack)),
         std::move(remedy)});
  }

  void predictPlan(Seconds lowerBound) {
    const SyncTime sync = syncTime(model_, out_.plan.pipelines, endsOf(out_.activity));
    PlanPrediction predicted;
    predicted.pipeline = slowest_;
    predicted.sync = sync.sync;
    predicted.optimizer = sync.optimizer;
    predicted.iteration = slowest_ + sync.sync + sync.optimizer;
    const double batch = static_cast<double>(model_.training().globalBatch);
    predicted.samplesPerSecond = batch / predicted.iteration.value;
    predicted.tokensPerSecond = predicted.samplesPerSecond * static_cast<double>(model_.training().sequenceLength);
    FlopsPerSecond peak;
    for (const DeviceId device : model_.cluster().devices()) {
      const DeviceType& type = model_.cluster().typeOf(device);
      if (type.has(model_.training().precision)) peak += type.peak.at(model_.training().precision) * type.speed;
    }
    predicted.mfu = (batch * flopsPerSample(model_.model(), model_.training())) / peak / predicted.iteration;
    predicted.lowerBound = lowerBound;
    predicted.error = shownErrorOf(model_, out_.plan.pipelines);
    out_.closedForm = slowestClosedForm_ + sync.busiest + sync.optimizer;

    double waiting = 0, total = 0;
    for (std::size_t p = 0; p < out_.activity.size(); ++p) {
      for (std::size_t s = 0; s < out_.activity[p].size(); ++s) {
        const auto devices = static_cast<double>(out_.plan.pipelines[p].stages[s].devices.size());
        waiting += devices * (slowest_ - out_.activity[p][s].busy).value;
        total += devices * slowest_.value;
      }
    }
    if (total > 0) out_.bubbleFraction = waiting / total;
    out_.plan.predicted = predicted;
  }

  /// What a stage's rings take behind its compute; then it waits for the slowest, because the gradients' norm is over all, and
  /// updates.
  void addSyncSpans() {
    const PlanPrediction& predicted = *out_.plan.predicted;
    const Seconds synced = slowest_ + predicted.sync;
    const auto rings = syncSpans(model_, out_.plan.pipelines, endsOf(out_.activity));
    std::vector<Seconds> ends;
    int slowestLane = 0;
    auto& spans = out_.timeline.spans;
    for (std::size_t p = 0; p < rings.size(); ++p) {
      for (std::size_t s = 0; s < rings[p].size(); ++s) {
        const int lane = static_cast<int>(ends.size());
        Seconds end = out_.activity[p][s].end;
        const auto [ringsBegin, ringsEnd] = rings[p][s];
        if (ringsEnd > end) {
          const Seconds begin = std::max(ringsBegin, end);
          if (begin > end) spans.push_back({Span::Kind::Wait, lane, -1, end, begin, -1});
          spans.push_back({Span::Kind::Sync, lane, -1, begin, ringsEnd, -1});
          end = ringsEnd;
        }
        ends.push_back(end);
        if (end > ends[static_cast<std::size_t>(slowestLane)]) slowestLane = lane;
      }
    }
    for (int lane = 0; lane < static_cast<int>(ends.size()); ++lane) {
      const Seconds end = ends[static_cast<std::size_t>(lane)];
      if (end < synced) spans.push_back({Span::Kind::Wait, lane, -1, end, synced, slowestLane});
      if (predicted.optimizer > Seconds{})
        spans.push_back({Span::Kind::Optimizer, lane, -1, synced, synced + predicted.optimizer, -1});
    }
  }

  const CostModel& model_;
  bool withTimeline_;
  Simulations simulations_;
  Evaluation out_;
  Seconds slowest_, slowestClosedForm_;
};

}  // namespace

namespace {

/// A plan whose shape is wrong has no numbers; those that its file brought along are of another plan.
Evaluation refused(Plan plan, std::vector<Violation> violations) {
  plan.predicted.reset();
  for (Pipeline& pipeline : plan.pipelines) {
    pipeline.predictedTime.reset();
    for (Stage& stage : pipeline.stages) stage.predicted.reset();
  }
  Evaluation evaluation;
  evaluation.plan = std::move(plan);
  evaluation.violations = std::move(violations);
  return evaluation;
}

/// What a planner proved about the plan's problem, whatever was done to its pipelines since; 0 where the inputs or the profile
/// (every time of which enters the bound by work) are others now.
Seconds provenBound(const Plan& plan, Seconds workBound) {
  constexpr double kSame = 1e-9;  // as a file rounds
  if (!plan.predicted || plan.predicted->lowerBound <= workBound || !plan.search.is_object()) return {};
  const auto basis = plan.search.find(kWorkBoundField);
  if (basis == plan.search.end() || !basis->is_number()) return {};
  if (std::abs(basis->get<double>() / milliseconds(workBound) - 1) > kSame) return {};
  return inputsHash(plan.cluster, plan.model, plan.training) == plan.inputsSha256 ? plan.predicted->lowerBound : Seconds{};
}

}  // namespace

Evaluation evaluate(const Plan& plan, const Profile& profile, bool withTimeline, const RuntimeTraits& runtime) {
  if (auto broken = shapeViolations(plan); !broken.empty()) return refused(plan, std::move(broken));
  const CostModel model(plan.cluster, plan.model, plan.training, profile, runtime);
  const Seconds workBound = problemLowerBound(model);
  return evaluate(model, plan, std::max(workBound, provenBound(plan, workBound)), withTimeline);
}

Evaluation evaluate(const CostModel& model, Plan plan, Seconds lowerBound, bool withTimeline) {
  if (auto broken = shapeViolations(plan); !broken.empty()) return refused(std::move(plan), std::move(broken));
  return Evaluator(model, std::move(plan), withTimeline).run(lowerBound);
}

StageEnds endsOf(const std::vector<std::vector<StageActivity>>& activity) {
  StageEnds ends;
  for (const std::vector<StageActivity>& pipeline : activity) {
    std::vector<Seconds>& ofPipeline = ends.emplace_back();
    for (const StageActivity& stage : pipeline) ofPipeline.push_back(stage.end);
  }
  return ends;
}

std::optional<MemoryLack> worstLack(const CostModel& model, std::span<const Pipeline> pipelines) {
  MemoryLack worst;
  const MemoryByReplica memory = memoryOf(model, pipelines);
  for (std::size_t p = 0; p < memory.size(); ++p) {
    for (std::size_t s = 0; s < memory[p].size(); ++s) {
      const std::size_t fullest = fullestReplica(memory[p][s]);
      const Bytes lack = lackOf(memory[p][s][fullest]);
      if (lack > worst.lack) worst = {p, s, fullest, lack};
    }
  }
  if (worst.lack == Bytes{}) return std::nullopt;
  return worst;
}

Seconds iterationTime(const CostModel& model, std::span<const Pipeline> pipelines) {
  Simulations simulations(false);
  std::vector<std::vector<StageActivity>> activity;
  Seconds slowest;
  const StageEnds exchanges = exchangeTimes(model, pipelines);
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    const Simulation& simulation = simulations.of(timesOf(model, pipelines[p], p, exchanges)).simulation;
    slowest = std::max(slowest, simulation.time);
    activity.push_back(simulation.stages);
  }
  const SyncTime sync = syncTime(model, pipelines, endsOf(activity));
  return slowest + sync.sync + sync.optimizer;
}

}  // namespace evenkeel
