// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

Result<Run> fromText(const std::string& text) {
  auto json = parseJson(text, "r.json");
  if (!json) return std::move(json).error();
  JsonContext context{"r.json", {}};
  JsonReader reader(*json, context);
  Run run = readRun(reader);
  if (context.error) return *context.error;
  return run;
}

TEST(RunFile, HasTheDefaultsOfTheDesign) {
  const auto run = fromText(R"({"format": "evenkeel.run/1", "steps": 50})");
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_EQ(run->learningRate.peak, 1e-3);
  EXPECT_EQ(run->weightDecay, 0.1);
  EXPECT_EQ(run->beta2, 0.95);
  EXPECT_EQ(*fromText(toJson(*run).dump()), *run);
}

TEST(RunFile, RefusesWhatTheRuntimeCannotDoYet) {
  for (const char* field : {R"("tokens": 5)"}) {
    EXPECT_THAT(fromText(std::string(R"({"format": "evenkeel.run/1", "steps": 5, )") + field + "}").error().text(), HasSubstr("cannot be used yet")) << field;
  }
  EXPECT_TRUE(fromText(R"({"format": "evenkeel.run/1", "steps": 5, "dropout": 0, "on_failure": "stop"})"));
  EXPECT_FALSE(fromText(R"({"format": "evenkeel.run/1", "steps": 5, "dropout": 1.0})"));
  EXPECT_FALSE(fromText(R"({"format": "evenkeel.run/1", "steps": 0})"));
  EXPECT_FALSE(fromText(R"({"format": "evenkeel.run/1", "steps": 5, "betas": [0.9, 1.0]})"));
}

TEST(RunFile, EvaluatesOnDataOfItsOwn) {
  const auto run = fromText(R"({"format": "evenkeel.run/1", "steps": 50, "evaluate_every": 5, "data": {"validation": ["held-out.txt"]}})");
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_EQ(run->evaluation.every, 5);
  EXPECT_EQ(*fromText(toJson(*run).dump()), *run);
  EXPECT_THAT(fromText(R"({"format": "evenkeel.run/1", "steps": 50, "evaluate_every": 5})").error().text(), HasSubstr("no data to evaluate on"));
}

TEST(RunFile, RehearsesInAnyTempo) {
  const auto run = fromText(R"({"format": "evenkeel.run/1", "steps": 5, "rehearsal": {"time_scale": 0.5}})");
  ASSERT_TRUE(run) << run.error().text();
  ASSERT_TRUE(run->rehearsal);
  EXPECT_EQ(run->rehearsal->timeScale, 0.5);
  EXPECT_EQ(*fromText(toJson(*run).dump()), *run);
}

TEST(RunFile, HoldsWhatIsToHappenAtItsEndAndTheEnvironmentOfEachNode) {
  const auto run = fromText(R"({"format": "evenkeel.run/1", "steps": 5, "on_failure": "replan", "end_command": "mail me",
                                "environment": {"NCCL_DEBUG": "INFO", "b3": {"NCCL_SOCKET_IFNAME": "eth1"}}})");
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_EQ(run->onFailure, Run::OnFailure::Replan);
  EXPECT_EQ(run->endCommand, "mail me");
  EXPECT_EQ(run->environment, (Run::Environment{{"NCCL_DEBUG", "INFO"}}));
  EXPECT_EQ(run->nodeEnvironment.at("b3"), (Run::Environment{{"NCCL_SOCKET_IFNAME", "eth1"}}));
  EXPECT_EQ(*fromText(toJson(*run).dump()), *run);
  for (const char* field : {R"("environment": {"A": 1})", R"("environment": {"A B": "x"})", R"("environment": {"b3": {"1A": "x"}})", R"("environment": [])", R"("on_failure": "pray")"}) {
    EXPECT_FALSE(fromText(std::string(R"({"format": "evenkeel.run/1", "steps": 5, )") + field + "}")) << field;
  }
}

TEST(LearningRate, WarmsUpLinearlyThenFollowsACosine) {
  const Run::LearningRate rate;
  EXPECT_DOUBLE_EQ(rate.at(0, 100), 1e-4);
  EXPECT_DOUBLE_EQ(rate.at(9, 100), 1e-3);
  EXPECT_DOUBLE_EQ(rate.at(10, 100), 1e-3);
  EXPECT_DOUBLE_EQ(rate.at(99, 100), 1e-4);
  EXPECT_GT(rate.at(20, 100), rate.at(60, 100));
}

TEST(LearningRate, MayFollowALineOrStay) {
  const auto run = fromText(R"({"format": "evenkeel.run/1", "steps": 5, "learning_rate": {"schedule": "linear", "warmup_steps": 0}})");
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_EQ(*fromText(toJson(*run).dump()), *run);
  EXPECT_DOUBLE_EQ(run->learningRate.at(0, 5), 1e-3);
  EXPECT_DOUBLE_EQ(run->learningRate.at(2, 5), 5.5e-4);
  EXPECT_DOUBLE_EQ(run->learningRate.at(4, 5), 1e-4);
  const Run::LearningRate constant{.warmupSteps = 2, .schedule = Run::LearningRate::Schedule::Constant};
  EXPECT_DOUBLE_EQ(constant.at(0, 5), 5e-4);
  EXPECT_DOUBLE_EQ(constant.at(4, 5), 1e-3);
}

}  // namespace
}  // namespace evenkeel
