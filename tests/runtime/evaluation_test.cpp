// SPDX-License-Identifier: GPL-3.0-or-later
// What a run says of text that it does not train on: the same under any plan, and no trace of it in the training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/random_plans.h"
#include "tests/runtime/thread_world.h"
#include "tests/support/sweep.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using ::testing::Each;

constexpr std::int64_t kBatch = 11;

std::string text(int first) {
  std::string lines;
  for (int i = first; i < first + 200; ++i) lines += std::to_string(i * i % 83) + " gulls over " + std::to_string(i) + " masts.\n";
  return lines;
}

Run runOf(std::int64_t every) {
  Run run;
  run.steps = 8;
  run.learningRate.peak = 3e-3;
  run.learningRate.warmupSteps = 2;
  run.dropout = 0.2;
  run.validation = {"held out"};
  run.evaluation = {.every = every, .batches = 2};
  return run;
}

WorldOutcome trained(const Plan& plan, const Run& run, const std::string& resume = {}) {
  WorldOutcome outcome = trainInThreads(plan, run, text(0), resume, text(1000));
  EXPECT_THAT(outcome.errors, Each(""));
  return outcome;
}

std::vector<double> lossesOf(const WorldOutcome& outcome) {
  std::vector<double> losses;
  for (const Json& evaluation : outcome.evaluations) losses.push_back(evaluation.at("loss"));
  return losses;
}

TEST(Evaluation, OfRandomPlansIsThatOfOneDevice) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(sweep(3, 30)); ++seed) {
    const Plan plan = randomPlan(seed, randomModel(seed), kBatch);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + toJson(plan)["pipelines"].dump());
    const WorldOutcome one = trained(planOfOneDevice(plan), runOf(3)), all = trained(plan, runOf(3));
    ASSERT_EQ(one.evaluations.size(), 3U) << "after steps 3, 6 and the last";
    ASSERT_EQ(all.evaluations.size(), 3U);
    EXPECT_EQ(all.evaluations.back().at("step"), 8);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(lossesOf(all)[i], lossesOf(one)[i], 1e-5 * lossesOf(one)[i]);
    EXPECT_LT(lossesOf(one).back(), 0.95 * lossesOf(one).front());
  }
}

TEST(Evaluation, LeavesTheTrainingAsItIs) {
  const Plan plan = randomPlan(2, randomModel(2), kBatch);
  const WorldOutcome with = trained(plan, runOf(2)), without = trained(plan, runOf(0));
  EXPECT_TRUE(without.evaluations.empty());
  EXPECT_EQ(with.ofSteps(0, "loss"), without.ofSteps(0, "loss")) << "to the bit";
}

TEST(Evaluation, GoesOnAfterAResume) {
  const TemporaryDirectory folder;
  const Plan plan = randomPlan(5, randomModel(5), kBatch);
  auto wish = runOf(2);
  wish.checkpoint = {.every = 4, .keep = 9, .directory = folder.path().string()};
  const WorldOutcome whole = trained(plan, wish);
  wish.checkpoint = {};
  const WorldOutcome resumed = trained(plan, wish, whole.checkpoints.at(0));
  EXPECT_EQ(lossesOf(resumed), (std::vector<double>{lossesOf(whole)[2], lossesOf(whole)[3]})) << "after steps 6 and 8";
}

}  // namespace
}  // namespace evenkeel
