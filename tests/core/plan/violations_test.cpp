// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/violations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plan/features.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Plan twoPipelines() {
  return planOf(*parseClusterShorthand("1x2:cpu@0.5,1x2:cpu@0.25"), *modelFromArgument("tiny-gpt"),
                {{9, 2, {"cpu-0/0", "cpu-0/1"}, {0, 9, 18}}, {4, 1, {"cpu-1/0", "cpu-1/1"}, {0, 7, 18}}});
}

auto says(const std::string& where, const std::string& what) {
  return AllOf(Field(&Violation::where, where), Field(&Violation::what, HasSubstr(what)));
}

TEST(ShapeViolations, AreNoneInAValidPlan) { EXPECT_THAT(shapeViolations(twoPipelines()), IsEmpty()); }

// Public Metis: global batch 100 over 8 GPUs trained 80 (field-faults).
TEST(ShapeViolations, NameEverySampleThatWouldBeLost) {
  Plan plan = twoPipelines();
  plan.pipelines[0].localBatch = 8;
  EXPECT_THAT(shapeViolations(plan), ElementsAre(says("plan", "trains 12 of 13 samples")));
}

// Megatron-LM #1304: 30 layers on 4 stages, 28 built, silence (field-faults).
TEST(ShapeViolations, NameEveryUnitThatIsInNoStageOrInTwo) {
  Plan plan = twoPipelines();
  plan.pipelines[0].stages[1].units = {11, 18};
  EXPECT_THAT(shapeViolations(plan), ElementsAre(says("pipeline 0, stage 1", "units 9 to 10 are in no stage")));
  plan.pipelines[0].stages[1].units = {8, 18};
  EXPECT_THAT(shapeViolations(plan), ElementsAre(says("pipeline 0, stage 1", "begins with unit 8; 9 comes next")));
  plan.pipelines[0].stages[1].units = {9, 17};
  EXPECT_THAT(shapeViolations(plan), ElementsAre(says("pipeline 0", "units 17 to 17 are in no stage")));
  plan.pipelines[0].stages[1].units = {9, 19};
  EXPECT_THAT(shapeViolations(plan), ElementsAre(says("pipeline 0", "ends with unit 18; the model has 18 units")));
}

TEST(ShapeViolations, NameADeviceThatIsUsedTwiceOrUnknown) {
  Plan plan = twoPipelines();
  plan.pipelines[1].stages[0].devices = {{0, 1}};
  EXPECT_THAT(shapeViolations(plan), ElementsAre(says("pipeline 1, stage 0", "device cpu-0/1 is already in pipeline 0, stage 1")));
  plan.pipelines[1].stages[0].devices = {{7, 0}};
  EXPECT_THAT(shapeViolations(plan), ElementsAre(says("pipeline 1, stage 0", "is not in the cluster")));
}

TEST(ShapeViolations, NameTpThatDoesNotDivideAndGroupsAcrossNodes) {
  Plan plan = planOf(*parseClusterShorthand("2x2:A100-80-SXM"), *modelFromArgument("tiny-gpt"), {{8, 2, {"a100-80-sxm-0/0"}, {0, 18}}});
  plan.pipelines[0].stages[0].devices = {{0, 1}, {1, 0}};
  plan.pipelines[0].stages[0].tp = 2;
  EXPECT_THAT(shapeViolations(plan), ElementsAre(says("pipeline 0, stage 0", "a tp group spans nodes")));
  plan.pipelines[0].stages[0].tp = 3;
  EXPECT_THAT(shapeViolations(plan), ElementsAre(says("pipeline 0, stage 0", "has 2 devices for tp 3 x dp 1")));
}

TEST(ShapeViolations, NameSharesThatDoNotSumAndMicroBatchesThatAreTooLarge) {
  Plan plan = twoPipelines();
  plan.pipelines[0].stages[0].shares = {3};
  EXPECT_THAT(shapeViolations(plan), ElementsAre(says("pipeline 0, stage 0", "shares sum to 3 of 2")));
  plan = twoPipelines();
  plan.pipelines[1].microBatch = 5;
  EXPECT_THAT(shapeViolations(plan), ElementsAre(says("pipeline 1", "micro-batches of 5 samples but trains only 4")));
}

// V100 has no bf16.
TEST(ShapeViolations, NameAPrecisionThatAUsedDeviceLacks) {
  Plan plan = planOf(*parseClusterShorthand("1x1:V100-32-SXM2"), *modelFromArgument("tiny-gpt"), {{8, 2, {"v100-32-sxm2-0/0"}, {0, 18}}});
  EXPECT_EQ(plan.training.precision, Precision::Fp16);
  plan.training.precision = Precision::Bf16;
  EXPECT_THAT(shapeViolations(plan), ElementsAre(says("pipeline 0, stage 0", "has no bf16")));
}

TEST(ShapeViolations, NameADeviceWithoutATimeInATableOfLayers) {
  Plan plan = twoPipelines();
  OpaqueLayer layer{.name = "block"};
  layer.times = {{"V100-32-SXM2", {Seconds{0.001}, Seconds{0.002}}}};
  plan.model.opaque = OpaqueLayers{{}, layer, {}};
  plan.training.sequenceLength = plan.model.context - 1;
  EXPECT_THAT(shapeViolations(plan), AllOf(Contains(says("pipeline 0, stage 0", "has no time in the layers of tiny-gpt")),
                                           Contains(says("training", "sequence_length"))));
}

TEST(NotLaunchable, SaysThatATableOfLayersCannotBeTrained) {
  Plan plan = twoPipelines();
  plan.model.opaque = OpaqueLayers{};
  EXPECT_THAT(notLaunchable(plan, ownRuntime()), Contains(says("model", "table of layers")));
}

TEST(NotLaunchable, IsEmptyForAPlanInsideTheRuntimesFeatures) { EXPECT_THAT(notLaunchable(twoPipelines(), ownRuntime()), IsEmpty()); }

TEST(NotLaunchable, NamesEveryFeatureThatTheRuntimeLacks) {
  Plan plan = planOf(*parseClusterShorthand("1x2:A100-80-SXM"), *modelFromArgument("tiny-llama"), {{8, 2, {"a100-80-sxm-0/0"}, {0, 18}}});
  RuntimeFeatures features{.zeroStages = {0}, .precisions = {Precision::Fp32}, .families = {Family::Gpt}};
  EXPECT_THAT(notLaunchable(plan, features),
              ElementsAre(says("cluster", "A100-80-SXM is plan only"), says("model", "llama"), says("training", "bf16"),
                          says("training", "ZeRO-1"), says("training", "block-wise"), says("training", "unfused")));
}

TEST(NotLaunchable, CardsOfNvidiaNeedAWorkerWithCudaAndOthersAreForPlanningOnly) {
  const Plan cards = planOf(*parseClusterShorthand("1x1:A100-80-SXM"), *modelFromArgument("tiny-gpt"), {{8, 2, {"a100-80-sxm-0/0"}, {0, 18}}});
  EXPECT_THAT(notLaunchable(cards, ownRuntime(false)), ElementsAre(says("cluster", "A100-80-SXM is plan only: this worker was built without CUDA")));
  EXPECT_THAT(notLaunchable(cards, ownRuntime(true)), IsEmpty());
  const Plan others = planOf(*parseClusterShorthand("1x1:MI300X"), *modelFromArgument("tiny-gpt"), {{8, 2, {"mi300x-0/0"}, {0, 18}}});
  EXPECT_THAT(notLaunchable(others, ownRuntime(true)), ElementsAre(says("cluster", "MI300X is plan only: the runtime cannot train on it")));
}

TEST(RuntimeFeatures, SurviveTheirFile) {
  const auto again = parseFeatures(toJson(ownRuntime()), "worker");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, ownRuntime());
  EXPECT_EQ(*parseFeatures(toJson(ownRuntime(true)), "worker"), ownRuntime(true));
  Json older = toJson(ownRuntime());
  older.erase("cuda");  // of a worker that knew of none
  EXPECT_EQ(*parseFeatures(older, "worker"), ownRuntime());
}

}  // namespace
}  // namespace evenkeel
