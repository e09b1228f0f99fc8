// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Plan example() {
  Plan plan = planOf(*parseClusterShorthand("1x2:cpu@0.5,1x2:cpu@0.25"), *modelFromArgument("tiny-gpt"),
                     {{9, 2, {"cpu-0/0", "cpu-0/1"}, {0, 9, 18}}, {4, 1, {"cpu-1/0"}, {0, 18}}});
  plan.pipelines[0].stages[0].recompute = {{{1, 3}, {Op::Qkv, Op::Softmax}}};
  plan.pipelines[0].stages[0].predicted = StagePrediction{.forward = fromMilliseconds(1.5), .backward = fromMilliseconds(3), .send = {}, .inFlight = 2,
                                                          .memory = {.weights = {100}, .gradients = {50}, .optimizer = {}, .activations = {7}, .transient = {}, .reserved = {}, .capacity = {1000}}};
  plan.predicted = PlanPrediction{.iteration = fromMilliseconds(20), .pipeline = fromMilliseconds(19), .lowerBound = fromMilliseconds(18)};
  plan.search = {{"planner", "by hand"}};
  plan.inputsSha256 = inputsHash(plan.cluster, plan.model, plan.training);
  return plan;
}

TEST(PlanFile, RoundTripsEveryField) {
  const Json written = toJson(example());
  const auto again = parsePlan(written, "p.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(toJson(*again).dump(), written.dump());
  EXPECT_EQ(again->pipelines[0].stages[0].predicted, example().pipelines[0].stages[0].predicted);
  EXPECT_EQ(written["predicted"]["gap"], 0.1);
  EXPECT_EQ(written["idle_devices"], Json({"cpu-1/1"}));
  EXPECT_EQ(written["pipelines"][0]["stages"][0]["layers"], 4.0);
  EXPECT_EQ(written["pipelines"][0]["stages"][0]["predicted"]["memory"]["total"], 157);
}

TEST(PlanFile, NeedsNoPredictionsWhenWrittenByHand) {
  Json json = toJson(example());
  json.erase("predicted");
  json.erase("search");
  json.erase("inputs_sha256");
  for (auto& pipeline : json["pipelines"]) {
    for (auto& stage : pipeline["stages"]) {
      for (const char* key : {"predicted", "shares", "recompute", "layers"}) stage.erase(key);
    }
  }
  json["note"] = "mine";
  const auto plan = parsePlan(json, "p.json");
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(toJson(*plan)["note"], "mine");
}

TEST(PlanFile, NamesThePlaceOfAMistake) {
  Json json = toJson(example());
  json["pipelines"][1]["stages"][0]["devices"][0] = "cpu-7/0";
  EXPECT_THAT(parsePlan(json, "p.json").error().text(), HasSubstr("p.json /pipelines/1/stages/0/devices/0: \"cpu-7/0\": the cluster has no node"));
  json = toJson(example());
  json["pipelines"][0]["stages"][1]["units"] = {1, 2, 3};
  EXPECT_THAT(parsePlan(json, "p.json").error().text(), HasSubstr("/pipelines/0/stages/1/units"));
  json = toJson(example());
  json["pipelines"][0]["micro_batch"] = 0;
  EXPECT_THAT(parsePlan(json, "p.json").error().text(), HasSubstr("/pipelines/0/micro_batch: is 0"));
}

// nnScaler #28: a plan re-used after the sequence length changed (field-faults).
TEST(InputsHash, ChangesWithEveryInput) {
  const Plan plan = example();
  Training training = plan.training;
  training.sequenceLength = 64;
  EXPECT_NE(inputsHash(plan.cluster, plan.model, training), plan.inputsSha256);
  Cluster cluster = plan.cluster;
  cluster.nodes[1].nic.bandwidth = fromGbs(1);
  EXPECT_NE(inputsHash(cluster, plan.model, plan.training), plan.inputsSha256);
  const auto again = parsePlan(toJson(plan), "p.json");
  EXPECT_EQ(inputsHash(again->cluster, again->model, again->training), plan.inputsSha256);
}

TEST(PipelineSamples, OnlyTheLastMicroBatchIsRagged) {
  const Pipeline pipeline{.localBatch = 13, .microBatch = 4, .stages = {}, .predictedTime = {}, .extra = {}};
  EXPECT_EQ(pipeline.microBatchCount(), 4);
  EXPECT_EQ(pipeline.samplesOf(2), 4);
  EXPECT_EQ(pipeline.samplesOf(3), 1);
}

TEST(StageShares, AreAsEvenAsPossibleUnlessSaid) {
  Stage stage;
  stage.dp = 3;
  EXPECT_THAT(stage.sharesOf(8), ElementsAre(3, 3, 2));
  stage.shares = {5, 2, 1};
  EXPECT_THAT(stage.sharesOf(8), ElementsAre(5, 2, 1));
}

}  // namespace
}  // namespace evenkeel
