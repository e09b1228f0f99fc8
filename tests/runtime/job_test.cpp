// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/job/process.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

Json example() {
  const Plan plan =
      planOf(*parseClusterShorthand("1x2:cpu"), *modelFromArgument("tiny-gpt"), {{4, 2, {"cpu-0/0", "cpu-0/1"}, {0, 9, 18}}});
  return {{"format", kJobFormat},
          {"run_id", "r1"},
          {"plan", toJson(plan)},
          {"run", {{"format", kRunFormat}, {"steps", 3}}},
          {"data", {{"train", "/data/text"}, {"sha256", "ab"}}},
          {"timeouts", {{"peer_s", 2.5}, {"start_s", 10}}}};
}

TEST(Job, ReadsWhatTheLauncherWrites) {
  const auto job = parseJob(example(), "job.json");
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(job->runId, "r1");
  EXPECT_EQ(job->run.steps, 3);
  EXPECT_EQ(job->trainFile, "/data/text");
  EXPECT_EQ(job->trainSha256, "ab");
  EXPECT_EQ(job->peerTimeout, Seconds{2.5});
  EXPECT_EQ(job->startTimeout, Seconds{10});
  EXPECT_EQ(job->planSha256.size(), 64U);
}

TEST(Job, NamesTheFieldThatIsWrong) {
  const auto errorOf = [](const std::function<void(Json&)>& change) {
    Json json = example();
    change(json);
    const auto job = parseJob(json, "job.json");
    return job ? std::string("accepted") : job.error().text();
  };
  EXPECT_THAT(errorOf([](Json& j) { j = Json::array(); }), HasSubstr("job.json"));
  EXPECT_THAT(errorOf([](Json& j) { j.erase("plan"); }), HasSubstr("plan"));
  EXPECT_THAT(errorOf([](Json& j) { j.erase("data"); }), HasSubstr("data"));
  EXPECT_THAT(errorOf([](Json& j) { j["format"] = "evenkeel.job/9"; }), HasSubstr("evenkeel.job/1"));
  EXPECT_THAT(errorOf([](Json& j) { j["run"].erase("steps"); }), HasSubstr("/run/steps"));
  EXPECT_THAT(errorOf([](Json& j) { j["timeouts"]["peer_s"] = 0; }), HasSubstr("/timeouts/peer_s"));
  EXPECT_THAT(errorOf([](Json& j) { j["plan"]["pipelines"][0]["stages"][0]["devices"][0] = "no/7"; }), HasSubstr("no/7"));
}

TEST(Job, RefusesPlansThatLoseLayersOrSamples) {
  // Megatron-LM #1304: 30 layers over 4 stages, 28 were built and trained without a word.
  Json json = example();
  json["plan"]["pipelines"][0]["stages"][1]["units"] = {9, 17};
  EXPECT_THAT(parseJob(json, "job.json").error().text(), HasSubstr("units 17 to 17 are in no stage"));
  json = example();
  json["plan"]["pipelines"][0]["local_batch"] = 3;
  EXPECT_THAT(parseJob(json, "job.json").error().text(), HasSubstr("trains 3 of 4 samples"));
}

TEST(Job, TakesPlansForCardsWhereTheWorkerWasBuiltForThem) {
  Json json = example();
  json["plan"] = toJson(planOf(*parseClusterShorthand("1x1:A100-80-SXM"), *modelFromArgument("tiny-gpt"), {{4, 2, {"a100-80-sxm-0/0"}, {0, 18}}}));
  EXPECT_THAT(parseJob(json, "job.json").error().text(), HasSubstr("this worker was built without CUDA"));
  const auto job = parseJob(json, "job.json", ownRuntime(true));
  EXPECT_TRUE(job) << job.error().text();
}

TEST(Job, RefusesWhatThisRuntimeCannotExecute) {
  Json json = example();
  json["plan"]["training"]["attention"] = "fused";
  EXPECT_THAT(parseJob(json, "job.json").error().text(), HasSubstr("no fused attention kernel yet"));
  json = example();
  json["plan"]["model"]["position"] = "rotary";
  json["plan"]["model"]["head_dim"] = 7;
  EXPECT_THAT(parseJob(json, "job.json").error().text(), HasSubstr("rotary"));
}

Variables variablesOf(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) {
    const auto known = values.find(name);
    return known == values.end() ? std::nullopt : std::optional(known->second);
  };
}

TEST(RankEnvironment, ComesFromTheUsualVariables) {
  const std::map<std::string, std::string> good = {{"MASTER_ADDR", "10.0.0.1"},
                                                   {"MASTER_PORT", "29500"},
                                                   {"RANK", "1"},
                                                   {"WORLD_SIZE", "2"},
                                                   {"EVENKEEL_TRAIN_ADDRESS", "10.0.0.2"}};
  const auto environment = readRankEnvironment(variablesOf(good), 2);
  ASSERT_TRUE(environment);
  EXPECT_EQ(
      *environment,
      (RankEnvironment{.masterAddress = "10.0.0.1", .masterPort = 29500, .rank = 1, .worldSize = 2, .trainAddress = "10.0.0.2"}));

  const auto errorOf = [&](const std::string& name, const std::string& value, int devices = 2) {
    auto changed = good;
    changed[name] = value;
    const auto result = readRankEnvironment(variablesOf(changed), devices);
    return result ? std::string("accepted") : result.error().text();
  };
  EXPECT_THAT(errorOf("RANK", "2"), HasSubstr("RANK: is \"2\"; expected a number from 0 to 1"));
  EXPECT_THAT(errorOf("RANK", "-1"), HasSubstr("RANK"));
  EXPECT_THAT(errorOf("RANK", "one"), HasSubstr("RANK"));
  EXPECT_THAT(errorOf("WORLD_SIZE", "3"), HasSubstr("WORLD_SIZE: is 3, but the plan uses 2 devices"));
  EXPECT_THAT(errorOf("MASTER_ADDR", ""), HasSubstr("MASTER_ADDR: is not set"));
  EXPECT_THAT(errorOf("MASTER_PORT", "0"), HasSubstr("MASTER_PORT"));
  EXPECT_THAT(errorOf("EVENKEEL_TRAIN_ADDRESS", ""), HasSubstr("EVENKEEL_TRAIN_ADDRESS: is not set"));
}

TEST(BetterKernels, AreAskedForWhereOpenBlasIsOlderThanTheProcessor) {
  EXPECT_EQ(betterKernels("Prescott", {.avx2 = true, .avx512 = true}), "SkylakeX");
  EXPECT_EQ(betterKernels("Prescott", {.avx2 = true}), "Haswell");
  EXPECT_EQ(betterKernels("Prescott", {}), "");
  EXPECT_EQ(betterKernels("Zen", {.avx2 = true, .avx512 = true}), "");
  EXPECT_EQ(betterKernels("", {.avx2 = true}), "");
}

}  // namespace
}  // namespace evenkeel
