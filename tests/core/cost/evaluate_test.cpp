// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/profile/analytic_profile.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Plan twoPipelines() {
  return planOf(*parseClusterShorthand("1x2:cpu@0.5,1x2:cpu@0.25"), *modelFromArgument("tiny-gpt"),
                {{9, 2, {"cpu-0/0", "cpu-0/1"}, {0, 9, 18}}, {4, 1, {"cpu-1/0", "cpu-1/1"}, {0, 7, 18}}});
}

Evaluation evaluated(const Plan& plan) { return evaluate(plan, AnalyticProfile(plan.model, plan.training)); }

TEST(Evaluation, FillsEveryPrediction) {
  const Evaluation evaluation = evaluated(twoPipelines());
  ASSERT_TRUE(evaluation.valid());
  const PlanPrediction& predicted = *evaluation.plan.predicted;
  EXPECT_EQ(predicted.iteration, predicted.pipeline + predicted.sync + predicted.optimizer);
  EXPECT_DOUBLE_EQ(predicted.samplesPerSecond, 13 / predicted.iteration.value);
  EXPECT_DOUBLE_EQ(predicted.tokensPerSecond, 128 * predicted.samplesPerSecond);
  EXPECT_GT(predicted.gap(), 0.0);
  EXPECT_LT(predicted.gap(), 1.0);
  EXPECT_THAT(evaluation.peakBytes, SizeIs(4));
  for (const Pipeline& pipeline : evaluation.plan.pipelines) {
    EXPECT_LE(*pipeline.predictedTime, predicted.pipeline);
    for (const Stage& stage : pipeline.stages) {
      EXPECT_GT(stage.predicted->forward, Seconds{});
      EXPECT_LE(stage.predicted->memory.total(), stage.predicted->memory.capacity);
      EXPECT_EQ(stage.predicted->memory.total(), evaluation.peakBytes.at(stage.devices[0]));
    }
  }
}

TEST(Evaluation, OfTheCheapPathIsTheSameNumber) {
  const Plan plan = twoPipelines();
  const AnalyticProfile profile(plan.model, plan.training);
  const CostModel model(plan.cluster, plan.model, plan.training, profile);
  EXPECT_EQ(iterationTime(model, plan.pipelines), evaluated(plan).plan.predicted->iteration);
  EXPECT_EQ(worstLack(model, plan.pipelines), std::nullopt);
}

TEST(Evaluation, SaysOnlyWhatIsWrongWithABrokenShape) {
  Plan plan = twoPipelines();
  plan.pipelines[0].localBatch = 8;
  const Evaluation evaluation = evaluated(plan);
  ASSERT_THAT(evaluation.violations, SizeIs(1));
  EXPECT_FALSE(evaluation.plan.predicted);
}

// Megatron-LM #525: planned 23 GB, out of memory at 32. alpa #882: "no solution" (field-faults).
TEST(Evaluation, NamesTheDeviceThatLacksMemoryAndByHowMuch) {
  const Plan plan = planOf(*parseClusterShorthand("1x2:V100-32-SXM2"), *modelFromArgument("gpt3-1.3b"),
                           {{8, 8, {"v100-32-sxm2-0/0", "v100-32-sxm2-0/1"}, {0, 25, 50}}});
  const Evaluation evaluation = evaluated(plan);
  ASSERT_FALSE(evaluation.valid());
  EXPECT_EQ(evaluation.violations[0].where, "pipeline 0, stage 0, V100-32-SXM2 v100-32-sxm2-0/0");
  EXPECT_THAT(evaluation.violations[0].what, HasSubstr("lacks"));
  EXPECT_THAT(evaluation.violations[0].what, HasSubstr("GiB"));
  EXPECT_FALSE(evaluation.violations[0].remedy.empty());
  EXPECT_TRUE(evaluation.plan.predicted);  // people want to see the bars of a plan that does not fit
}

// nanoGPT PR #464, OLMo-core PR #614: MFU above 100 % (field-faults). A mixed cluster's MFU is over the sum of its peaks.
TEST(Evaluation, CountsIdleDevicesAndSpeedInTheMfu) {
  Plan plan = planOf(*parseClusterShorthand("1x1:cpu"), *modelFromArgument("tiny-gpt"), {{8, 4, {"cpu-0/0"}, {0, 18}}});
  const double alone = evaluated(plan).plan.predicted->mfu;
  EXPECT_GT(alone, 0.2);
  EXPECT_LT(alone, 1.0);
  plan.cluster = *parseClusterShorthand("1x1:cpu,1x2:cpu@0.5");
  EXPECT_NEAR(evaluated(plan).plan.predicted->mfu, alone / 2, 1e-9);
}

TEST(Evaluation, ShowsWhoWaitsForWhomUntilTheUpdate) {
  const Evaluation evaluation = evaluated(twoPipelines());
  const PlanPrediction& predicted = *evaluation.plan.predicted;
  ASSERT_THAT(evaluation.timeline.lanes, SizeIs(4));
  std::vector<Seconds> ends(4), covered(4);
  for (const Span& span : evaluation.timeline.spans) {
    if (span.kind == Span::Kind::Send) continue;
    const auto lane = static_cast<std::size_t>(span.lane);
    ends[lane] = std::max(ends[lane], span.end);
    covered[lane] += span.end - span.start;
  }
  for (std::size_t lane = 0; lane < 4; ++lane) {
    EXPECT_NEAR(ends[lane].value, predicted.iteration.value, 1e-12);
    EXPECT_NEAR(covered[lane].value, predicted.iteration.value, 1e-9);  // no gap: whoever does nothing waits
  }
}

TEST(Evaluation, SimulatesEqualPipelinesAlike) {
  const Plan plan = planOf(*parseClusterShorthand("1x2:cpu"), *modelFromArgument("tiny-gpt"),
                           {{4, 2, {"cpu-0/0"}, {0, 18}}, {4, 2, {"cpu-0/1"}, {0, 18}}});
  const Evaluation evaluation = evaluated(plan);
  EXPECT_EQ(evaluation.activity[0], evaluation.activity[1]);
  EXPECT_EQ(evaluation.bubbleFraction, 0.0);
}

}  // namespace
}  // namespace evenkeel
