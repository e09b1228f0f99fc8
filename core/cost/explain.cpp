// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>

#include "core/cost/stage_time.h"
#include "core/cost/sync.h"
#include "core/profile/op_work.h"

namespace evenkeel {
namespace {

std::string ms(Seconds time) { return fmt::format("{:.4g} ms", milliseconds(time)); }
std::string megabytes(Bytes size) { return fmt::format("{:.4g} MB", static_cast<double>(size.value) / 1e6); }

constexpr double kNothing = 1e-12;  // seconds: rounding

class Explainer {
 public:
  Explainer(const CostModel& model, const Evaluation& evaluation)
      : model_(model), plan_(evaluation.plan), evaluation_(evaluation) {}

  std::vector<ExplainedTerm> run() {
    const PlanPrediction& predicted = *plan_.predicted;
    add(0, "iteration", predicted.iteration,
        fmt::format("slowest pipeline {} + sync {} + optimizer {}", ms(predicted.pipeline), ms(predicted.sync),
                    ms(predicted.optimizer)));
    explainPipeline();
    explainSync();
    add(1, "optimizer", predicted.optimizer,
        "bytes of weights, gradients and moments of the fullest device / its memory bandwidth");
    return std::move(terms_);
  }

 private:
  void add(int level, std::string what, Seconds time, std::string because) {
    terms_.push_back({level, std::move(what), time, std::move(because)});
  }

  void explainPipeline() {
    std::size_t slowest = 0;
    for (std::size_t p = 1; p < plan_.pipelines.size(); ++p) {
      if (*plan_.pipelines[p].predictedTime > *plan_.pipelines[slowest].predictedTime) slowest = p;
    }
    const Pipeline& pipeline = plan_.pipelines[slowest];
    const auto perMicroBatch = [&](std::size_t s) {
      return pipeline.stages[s].predicted->forward + pipeline.stages[s].predicted->backward;
    };
    std::size_t pace = 0;
    for (std::size_t s = 1; s < pipeline.stages.size(); ++s) {
      if (perMicroBatch(s) > perMicroBatch(pace)) pace = s;
    }
    const Seconds busy = evaluation_.activity[slowest][pace].busy;
    add(1, fmt::format("pipeline {}, the slowest of {}", slowest, plan_.pipelines.size()), *pipeline.predictedTime,
        fmt::format(
            "simulated 1F1B of {} micro-batches of {}: stage {} works {}, and waits {} for the pipe to fill, drain and for sends",
            pipeline.microBatchCount(), pipeline.microBatch, pace, ms(busy), ms(*pipeline.predictedTime - busy)));
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      const Stage& stage = pipeline.stages[s];
      add(2, fmt::format("stage {}{}, a micro-batch", s, s == pace ? ", which sets the pace" : ""), perMicroBatch(s),
          fmt::format("forward {} + backward {}; units [{}, {}) on {}, tp {} x dp {}", ms(stage.predicted->forward),
                      ms(stage.predicted->backward), stage.units.first, stage.units.last,
                      plan_.cluster.typeOf(stage.devices.front()).name, stage.tp, stage.dp));
      if (s == pace) explainOps(pipeline, stage);
      if (s + 1 < pipeline.stages.size()) explainSend(pipeline, s);
    }
  }

  /// Of the replica that takes longest.
  void explainOps(const Pipeline& pipeline, const Stage& stage) {
    const std::vector<int> shares = replicaShares(stage, pipeline.microBatch, pipeline.microBatch);
    struct Sum {
      double count = 0;
      Seconds forward, backward, again;
    };
    std::array<Sum, kOpCount> slowest{};
    Seconds longest{-1.0};
    int slowestKind = 0, slowestShare = 0;
    for (int r = 0; r < stage.dp; ++r) {
      const int share = shares[static_cast<std::size_t>(r)];
      if (share == 0) continue;
      const int kind = model_.kindOf(stage.devices[static_cast<std::size_t>(r * stage.tp)]);
      const OpCosts& costs = model_.opCosts(kind, stage.tp, share);
      std::array<Sum, kOpCount> sums{};
      Seconds total;
      for (const UnitGroup& group : unitGroups(model_.model(), stage)) {
        for (const Op op : opsOf(group.kind)) {
          const auto i = static_cast<std::size_t>(op);
          sums[i].count += group.count;
          sums[i].forward += static_cast<double>(group.count) * costs[i].forward;
          sums[i].backward += static_cast<double>(group.count) * costs[i].backward;
          if (group.recomputed.test(i)) sums[i].again += static_cast<double>(group.count) * costs[i].forward;
          total += static_cast<double>(group.count) * (costs[i].forward + costs[i].backward);
        }
      }
      if (total <= longest) continue;
      longest = total;
      slowest = sums;
      slowestKind = kind;
      slowestShare = share;
    }
    const OpCosts& costs = model_.opCosts(slowestKind, stage.tp, slowestShare);
    for (std::size_t i = 0; i < slowest.size(); ++i) {
      const Sum& sum = slowest[i];
      if (sum.count == 0 || sum.forward + sum.backward == Seconds{}) continue;
      const OpWork work = opWork(model_.model(), model_.training(), static_cast<Op>(i), stage.tp, slowestShare);
      std::string because = fmt::format("{:g} x ({} + {})", sum.count, ms(costs[i].forward), ms(costs[i].backward));
      if (sum.again > Seconds{}) because += fmt::format(" + {} recomputed", ms(sum.again));
      because += fmt::format(", {}", name(costs[i].source));
      if (work.forward.value > 0) because += fmt::format("; {:.4g} GFLOP forward", work.forward.value / 1e9);
      if (work.forwardTraffic.value > 0) because += fmt::format("; {} moved", megabytes(work.forwardTraffic));
      if (work.forwardReduced.value + work.backwardReduced.value > 0)
        because += fmt::format("; all-reduce of {} over {}", megabytes(work.forwardReduced + work.backwardReduced), stage.tp);
      add(3, std::string(label(model_.model(), static_cast<Op>(i))), sum.forward + sum.backward + sum.again, std::move(because));
    }
  }

  void explainSend(const Pipeline& pipeline, std::size_t s) {
    const Stage& from = pipeline.stages[s];
    const Stage& to = pipeline.stages[s + 1];
    const LinkSpec link = model_.link(from.devices.front(), to.devices.front());
    const Bytes size{pipeline.microBatch * model_.training().sequenceLength * model_.model().hidden *
                     bytesOf(model_.training().precision)};
    std::string because =
        fmt::format("{} by {} -> {}: {:.4g} us + {:.4g} GB/s", megabytes(size), plan_.cluster.nameOf(from.devices.front()),
                    plan_.cluster.nameOf(to.devices.front()), microseconds(link.latency), gbs(link.bandwidthFor(size)));
    if (from.tp != to.tp || from.dp != to.dp || to.tp > 1)
      because += fmt::format("; regrouped from tp {} x dp {} to tp {} x dp {}, flows of one link in turn", from.tp, from.dp,
                             to.tp, to.dp);
    add(3, fmt::format("send to stage {}, one direction", s + 1), from.predicted->send, std::move(because));
  }

  void explainSync() {
    add(1, "gradient sync", plan_.predicted->sync,
        fmt::format("{}-wise, ZeRO-{}, behind the slowest pipeline; the device that is done last",
                    name(model_.training().gradientSync), model_.training().zeroStage));
    const SyncQueue queue = slowestSync(model_, plan_.pipelines, endsOf(evaluation_.activity));
    Seconds busy;
    for (const SyncPart& part : queue.parts) {
      std::string way;
      if (part.isHierarchical) way = ", inside the nodes first";
      else if (part.sharing > 1) way = fmt::format(", a way shared by {:g} flows", part.sharing);
      add(2, fmt::format("ring of {} devices, {} parameters a device", part.members, part.parameters), part.time,
          fmt::format("{} a device; slowest {} -> {}{}", megabytes(part.bytes), plan_.cluster.nameOf(part.from),
                      plan_.cluster.nameOf(part.to), way));
      busy += part.time;
    }
    if (const Seconds waits = queue.end - queue.begin - busy; waits.value > kNothing)
      add(2, "between rings", waits, "waits until the other holders' gradients are final");
    if (const Seconds hidden = std::min(plan_.predicted->pipeline, queue.end) - queue.begin; hidden.value > kNothing)
      add(2, "beside compute", -1.0 * hidden, "begun before the slowest pipeline ends");
  }

  const CostModel& model_;
  const Plan& plan_;
  const Evaluation& evaluation_;
  std::vector<ExplainedTerm> terms_;
};

}  // namespace

std::vector<ExplainedTerm> explain(const CostModel& model, const Evaluation& evaluation) {
  assert(evaluation.plan.predicted);
  return Explainer(model, evaluation).run();
}

}  // namespace evenkeel
