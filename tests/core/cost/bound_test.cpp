// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/bound.h"

#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/cost/evaluate.h"
#include "core/profile/analytic_profile.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

/// A random valid shape: every pipeline one to three stages of tp 1, 2 or 4, mixed stages with dp 2 and unlike shares among them.
class RandomPlan {
 public:
  RandomPlan(Plan empty, std::uint64_t index) : plan_(std::move(empty)), random_(index, "plans") {}

  Plan run() {
    std::vector<DeviceId> fast, slow;
    for (const DeviceId device : plan_.cluster.devices())
      (plan_.cluster.typeIndexOf(device) == 0 ? fast : slow).push_back(device);
    const std::int64_t batch = plan_.training.globalBatch;
    const std::int64_t pipelines = 1 + below(2);
    for (std::int64_t p = 0; p < pipelines; ++p) {
      Pipeline pipeline;
      const std::int64_t first = std::max<std::int64_t>(1, batch / 3);
      pipeline.localBatch = pipelines == 1 ? batch : p == 0 ? first : batch - first;
      pipeline.microBatch = static_cast<int>(1 + below(std::min<std::int64_t>(8, pipeline.localBatch)));
      int unit = 0;
      while (unit < plan_.model.unitCount()) {
        Stage stage;
        const bool last = pipeline.stages.size() == 2;
        stage.units = {unit, last ? plan_.model.unitCount() : unit + 1 + static_cast<int>(below(plan_.model.unitCount() - unit))};
        unit = stage.units.last;
        fill(stage, pipeline.microBatch, fast, slow);
        pipeline.stages.push_back(std::move(stage));
      }
      plan_.pipelines.push_back(std::move(pipeline));
    }
    return std::move(plan_);
  }

 private:
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_.below(at_++, static_cast<std::uint64_t>(bound)));
  }

  /// Pools are in order of node; both are large enough for six stages of four.
  void fill(Stage& stage, int microBatch, std::vector<DeviceId>& fast, std::vector<DeviceId>& slow) {
    if (microBatch >= 2 && below(3) == 0) {
      stage.dp = 2;
      const int share = static_cast<int>(below(microBatch + 1));
      stage.shares = {share, microBatch - share};
      stage.devices = {fast.back(), slow.back()};
      fast.resize(fast.size() - 4);
      slow.resize(slow.size() - 4);
    } else {
      std::vector<DeviceId>& pool = below(2) == 0 ? fast : slow;
      stage.tp = 1 << below(3);
      stage.devices.assign(pool.end() - stage.tp, pool.end());
      pool.resize(pool.size() - 4);
    }
    if (below(2) == 0) {
      stage.recompute = {{stage.units, {Op::Score, Op::Softmax, Op::AttentionDropout, Op::Context}}};
    }
  }

  Plan plan_;
  CounterRandom random_;
  std::uint64_t at_ = 0;
};

TEST(ProblemLowerBound, IsNeverAboveTheReportedTimeOfARandomPlan) {
  const char* clusters[] = {"6x4:A100-80-SXM,6x4:V100-32-SXM2", "6x4:Ascend-910B2,6x4:Ascend-910B4", "6x4:cpu,6x4:cpu@0.25"};
  for (const char* text : clusters) {
    const Cluster cluster = *parseClusterShorthand(text);
    for (const std::int64_t batch : {1, 13, 64}) {
      Plan empty;
      empty.cluster = cluster;
      empty.model = *modelFromArgument("tiny-gpt");
      empty.training = resolveTraining({.globalBatch = batch}, cluster, empty.model);
      const AnalyticProfile profile(empty.model, empty.training);
      const CostModel model(empty.cluster, empty.model, empty.training, profile);
      const Seconds bound = problemLowerBound(model);
      EXPECT_GT(bound, Seconds{});
      for (std::uint64_t i = 0; i < 400; ++i) {
        Plan plan = RandomPlan(empty, i).run();
        if (plan.training.globalBatch == 1 && plan.pipelines.size() == 2) continue;
        const Evaluation evaluation = evaluate(model, std::move(plan), bound, false);
        ASSERT_TRUE(evaluation.valid()) << evaluation.violations.front().where << " " << evaluation.violations.front().what;
        ASSERT_LE(bound, evaluation.plan.predicted->iteration) << text << " plan " << i;
      }
    }
  }
}

TEST(ProblemLowerBound, IsCloseToAPlanThatKeepsEveryDeviceBusy) {
  const Plan plan =
      planOf(*parseClusterShorthand("1x1:A100-80-SXM"), *modelFromArgument("gpt3-1.3b"), {{64, 4, {"a100-80-sxm-0/0"}, {0, 50}}});
  const AnalyticProfile profile(plan.model, plan.training);
  const PlanPrediction predicted = *evaluate(plan, profile).plan.predicted;
  EXPECT_LT(predicted.gap(), 0.05);
  EXPECT_GE(predicted.gap(), 0.0);
}

}  // namespace
}  // namespace evenkeel
