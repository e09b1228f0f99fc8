// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/explain/reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "core/cost/evaluate.h"
#include "core/plan/problem.h"
#include "core/search/eth/polish.h"
#include "core/search/explain/idle_devices.h"
#include "core/search/limits.h"
#include "core/search/stage_table.h"

namespace evenkeel {
namespace {

using About = Reason::About;

/// Sentences of one kind.
constexpr std::size_t kMostRecomputing = 4, kMostIdle = 4;
/// A sync that is a smaller part of the iteration needs no sentence.
constexpr double kNoticeableSync = 0.005;

std::string timeText(Seconds time) {
  return time.value >= 1 ? fmt::format("{:.4g} s", time.value) : fmt::format("{:.4g} ms", milliseconds(time));
}

class Reasons {
 public:
  Reasons(const Plan& plan, const Profile& profile, std::stop_token stop)
      : model_(plan.cluster, plan.model, plan.training, profile),
        evaluation_(evaluate(model_, plan, {}, false)),
        plan_(evaluation_.plan),
        profile_(profile),
        stop_(std::move(stop)) {}

  std::vector<Reason> run() {
    if (!evaluation_.valid()) return {};
    for (std::size_t p = 1; p < plan_.pipelines.size(); ++p) {
      if (*plan_.pipelines[p].predictedTime > *plan_.pipelines[slowest_].predictedTime) slowest_ = p;
    }
    for (const auto step : {&Reasons::addBottleneck, &Reasons::addSamples, &Reasons::addMicroBatches, &Reasons::addRecomputation,
                            &Reasons::addSync, &Reasons::addIdle}) {
      if (!stop_.stop_requested()) (this->*step)();
    }
    return std::move(reasons_);
  }

 private:
  [[nodiscard]] Seconds iteration() const { return plan_.predicted->iteration; }

  [[nodiscard]] std::string against(Seconds time) const {
    const double change = 100 * (time / iteration() - 1);
    return fmt::format("{} ({:+.2f} %)", timeText(time), change == 0 ? 0.0 : change);
  }

  /// "... would take 73 s (+1.2 %)", or "...: " and what is wrong with the plan then.
  void add(About about, const std::string& before, std::vector<Pipeline> changed) {
    Plan other = plan_;
    other.pipelines = std::move(changed);
    const Evaluation then = evaluate(model_, std::move(other), {}, false);
    Reason reason{about, before, {}, then.plan.pipelines};
    if (then.valid()) {
      reason.iteration = then.plan.predicted->iteration;
      reason.sentence += fmt::format(" would take {}", against(*reason.iteration));
    } else {
      const Violation& first = then.violations.front();
      reason.sentence += fmt::format(": {} {}", first.where, first.what);
    }
    reasons_.push_back(std::move(reason));
  }

  [[nodiscard]] std::string typeOf(const Stage& stage) const { return plan_.cluster.typeOf(stage.devices.front()).name; }

  void addBottleneck() {
    const Pipeline& pipeline = plan_.pipelines[slowest_];
    const auto perMicroBatch = [&](std::size_t s) {
      return pipeline.stages[s].predicted->forward + pipeline.stages[s].predicted->backward;
    };
    std::size_t pace = 0;
    for (std::size_t s = 1; s < pipeline.stages.size(); ++s) {
      if (perMicroBatch(s) > perMicroBatch(pace)) pace = s;
    }
    const PlanPrediction& predicted = *plan_.predicted;
    reasons_.push_back({About::Bottleneck,
                        fmt::format("pipeline {} of {} is the slowest: {} of {} (sync {}, optimizer {}); its stage {} on {} sets "
                                    "the pace with {} for each of {} micro-batches",
                                    slowest_, plan_.pipelines.size(), timeText(predicted.pipeline), timeText(predicted.iteration),
                                    timeText(predicted.sync), timeText(predicted.optimizer), pace, typeOf(pipeline.stages[pace]),
                                    timeText(perMicroBatch(pace)), pipeline.microBatchCount()),
                        {},
                        {}});
    // Cut `pace - 1` is in front of the stage, cut `pace` behind it.
    for (const bool isInFront : {true, false}) {
      if (isInFront ? pace == 0 : pace + 1 == pipeline.stages.size()) continue;
      const std::size_t cut = isInFront ? pace - 1 : pace, to = isInFront ? pace - 1 : pace + 1;
      const int count = isInFront ? -1 : 1;
      std::vector<Pipeline> changed = plan_.pipelines;
      bool isMoved = true;
      for (Pipeline& other : changed) {
        if (alike(other, pipeline)) isMoved = moveCut(other, cut, count) && isMoved;
      }
      if (isMoved) add(About::Bottleneck, fmt::format("a unit less there and one more in stage {}", to), std::move(changed));
    }
  }

  void addSamples() {
    std::size_t fastest = 0;
    for (std::size_t p = 1; p < plan_.pipelines.size(); ++p) {
      if (*plan_.pipelines[p].predictedTime < *plan_.pipelines[fastest].predictedTime) fastest = p;
    }
    const std::int64_t samples = plan_.pipelines[slowest_].microBatch;
    if (fastest == slowest_ || plan_.pipelines[slowest_].localBatch <= samples) return;
    std::vector<Pipeline> changed = plan_.pipelines;
    changed[slowest_].localBatch -= samples;
    changed[slowest_].microBatch = static_cast<int>(std::min<std::int64_t>(samples, changed[slowest_].localBatch));
    changed[fastest].localBatch += samples;
    add(About::Samples,
        fmt::format("a micro-batch less in pipeline {} and {} samples more in pipeline {}", slowest_, samples, fastest),
        std::move(changed));
  }

  void addMicroBatches() {
    for (const bool isDoubled : {true, false}) {
      std::vector<Pipeline> changed = plan_.pipelines;
      bool isChanged = false;
      for (Pipeline& pipeline : changed) {
        const std::int64_t wanted = isDoubled ? 2 * std::int64_t{pipeline.microBatch} : (pipeline.microBatch + 1) / 2;
        const auto now = static_cast<int>(std::min(wanted, pipeline.localBatch));
        isChanged = isChanged || now != pipeline.microBatch;
        pipeline.microBatch = now;
        for (Stage& stage : pipeline.stages) stage.shares.clear();  // they were of the other micro-batch
      }
      if (isChanged)
        add(About::MicroBatch, fmt::format("micro-batches {} as large", isDoubled ? "twice" : "half"), std::move(changed));
    }
  }

  void addRecomputation() {
    std::vector<std::pair<std::size_t, std::size_t>> stages;  // one of each look
    for (std::size_t p = 0; p < plan_.pipelines.size(); ++p) {
      const bool isNew = std::ranges::none_of(plan_.pipelines.begin(), plan_.pipelines.begin() + static_cast<std::ptrdiff_t>(p),
                                              [&](const Pipeline& other) { return alike(other, plan_.pipelines[p]); });
      for (std::size_t s = 0; isNew && s < plan_.pipelines[p].stages.size(); ++s) {
        if (!plan_.pipelines[p].stages[s].recompute.empty()) stages.emplace_back(p, s);
      }
    }
    std::ranges::stable_sort(stages, std::greater<>{}, [&](const auto& at) {
      const StagePrediction& predicted = *plan_.pipelines[at.first].stages[at.second].predicted;
      return predicted.backward / predicted.forward;
    });
    for (std::size_t i = 0; i < std::min(stages.size(), kMostRecomputing); ++i) {
      const auto& [p, s] = stages[i];
      std::vector<Pipeline> changed = plan_.pipelines;
      for (Pipeline& pipeline : changed) {
        if (alike(pipeline, plan_.pipelines[p])) pipeline.stages[s].recompute.clear();
      }
      Plan other = plan_;
      other.pipelines = changed;
      const Evaluation then = evaluate(model_, std::move(other), {}, false);
      const StagePrediction& now = *plan_.pipelines[p].stages[s].predicted;
      const StagePrediction& without = *then.plan.pipelines[p].stages[s].predicted;
      const Seconds cost = now.backward - without.backward;
      const Bytes freed{without.memory.total().value - now.memory.total().value};
      add(About::Recomputation,
          fmt::format(
              "recomputation in stage {} of pipeline {} on {} frees {:.3g} GiB for {} a micro-batch; without it the iteration", s,
              p, typeOf(plan_.pipelines[p].stages[s]), gib(freed), timeText(cost)),
          std::move(changed));
    }
  }

  void addSync() {
    if (plan_.predicted->sync.value < kNoticeableSync * iteration().value) return;
    for (const auto& [word, sync] : gradientSyncWords()) {
      if (sync == plan_.training.gradientSync) continue;
      Plan other = plan_;
      other.training.gradientSync = sync;
      const CostModel model(other.cluster, other.model, other.training, profile_);
      const Evaluation then = evaluate(model, other, {}, false);
      Reason reason{About::Sync, fmt::format("{}-wise gradient sync", word), {}, plan_.pipelines};
      if (then.valid()) {
        reason.iteration = then.plan.predicted->iteration;
        reason.sentence += fmt::format(" would take {}", against(*reason.iteration));
      } else {
        reason.sentence += ": " + then.violations.front().what;
      }
      reasons_.push_back(std::move(reason));
    }
  }

  void addIdle() {
    std::map<std::pair<int, int>, std::vector<DeviceId>> idle;  // by (kind, node)
    for (const DeviceId device : plan_.idleDevices()) idle[{model_.kindOf(device), device.node}].push_back(device);
    std::size_t said = 0;
    for (const auto& [where, devices] : idle) {
      if (said++ == kMostIdle || stop_.stop_requested()) return;
      const std::string who =
          devices.size() == 1
              ? fmt::format("{} {} is idle", plan_.cluster.typeOf(devices.front()).name, plan_.cluster.nameOf(devices.front()))
              : fmt::format("{} {} of {} are idle", devices.size(), plan_.cluster.typeOf(devices.front()).name,
                            plan_.cluster.nodes[static_cast<std::size_t>(devices.front().node)].name);
      if (const auto obstacle = obstacleTo(plan_.model, plan_.training.precision, plan_.cluster.typeOf(devices.front()))) {
        reasons_.push_back({About::Idle, fmt::format("{}: it {}", who, obstacle->what), {}, {}});
        continue;
      }
      auto used = bestUseOf(model_, plan_.pipelines, devices.front(), stop_);
      if (used.pipelines.empty()) {
        reasons_.push_back({About::Idle, fmt::format("{}: no stage to take part in was found", who), {}, {}});
      } else {
        add(About::Idle, fmt::format("{}: {}", who, used.how), std::move(used.pipelines));
      }
    }
  }

  const CostModel model_;
  const Evaluation evaluation_;
  const Plan& plan_;
  const Profile& profile_;
  std::stop_token stop_;
  std::size_t slowest_ = 0;
  std::vector<Reason> reasons_;
};

}  // namespace

std::string_view name(Reason::About about) {
  static constexpr std::string_view kNames[] = {"bottleneck", "samples", "micro-batch", "recomputation", "sync", "idle"};
  return kNames[static_cast<std::size_t>(about)];
}

std::vector<Reason> reasonsFor(const Plan& plan, const Profile& profile, std::stop_token stop) {
  if (!shapeViolations(plan).empty()) return {};
  return Reasons(plan, profile, std::move(stop)).run();
}

std::vector<std::string> whatFits(const Problem& problem, const Profile& profile) {
  const CostModel model(problem.cluster, problem.model, problem.training, profile);
  const Limits limits = limitsOf(problem);
  const int units = problem.model.unitCount();
  std::map<int, std::vector<DeviceId>> kinds;
  for (const DeviceId device : limits.devices) kinds[model.kindOf(device)].push_back(device);
  std::vector<std::string> sentences;
  double together = 0;
  StageTables tables(model, {.perStage = limits.recompute, .everywhere = {}});
  for (const auto& [kind, devices] : kinds) {
    std::map<int, int> ofNode;
    for (const DeviceId device : devices) ++ofNode[device.node];
    const int group = std::ranges::max_element(ofNode, {}, [](const auto& entry) { return entry.second; })->second;
    double best = 0;
    int bestTp = 1;
    for (const int tp : limits.tps) {
      if (tp > group) continue;
      const StageTable& table = tables.of(kind, tp, 1);
      const int held = table.lastUnit(1, units - 1, table.levelCount() - 1, Seconds{1e9}, 1, 1, false) - 1;
      if (held / static_cast<double>(tp) > best) {
        best = held / static_cast<double>(tp);
        bestTp = tp;
      }
    }
    together += best * static_cast<double>(devices.size());
    sentences.push_back(
        fmt::format("{} {} ({:.3g} GiB after the reserve): one holds {:.3g} of the {} units at best (tp {}, one sample{})",
                    devices.size(), model.typeOfKind(kind).name, gib(model.capacityOf(kind)), best, units, bestTp,
                    limits.recompute ? ", everything recomputed" : ""));
  }
  sentences.push_back(fmt::format("together they hold about {:.4g} of {} units once", together, units));
  return sentences;
}

}  // namespace evenkeel
