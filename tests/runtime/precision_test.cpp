// SPDX-License-Identifier: GPL-3.0-or-later
// Training in 16 bits: weights and activations are narrow, gradients and masters are not, and one overflow is everybody's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/optim/loss_scale.h"
#include "tests/runtime/random_plans.h"
#include "tests/runtime/thread_world.h"
#include "tests/support/plans.h"
#include "tests/support/sweep.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using ::testing::Each;

constexpr std::int64_t kBatch = 11;

std::string text() {
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += std::to_string(i * i % 97) + " boats of " + std::to_string(i) + " keep an even keel.\n";
  return lines;
}

Run runOf(std::int64_t steps) {
  Run run;
  run.steps = steps;
  run.learningRate.peak = 3e-3;
  run.learningRate.warmupSteps = 2;
  run.gradientClip = 1;
  return run;
}

Plan in(Precision precision, Plan plan) {
  plan.training.precision = precision;
  return plan;
}

void expectNear(const std::vector<double>& values, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], tolerance * expected[i]) << "step " << i + 1;
}

std::string describe(const Plan& plan) { return toJson(plan)["pipelines"].dump(); }

TEST(Bf16, RandomPlansFollowTheCurveOfOneDeviceInFp32) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(sweep(1, 20)); ++seed) {
    const Plan plan = randomPlan(seed, randomModel(seed), kBatch);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(plan));
    const WorldOutcome one = trainInThreads(planOfOneDevice(plan), runOf(50), text());
    const WorldOutcome all = trainInThreads(in(Precision::Bf16, plan), runOf(50), text());
    ASSERT_THAT(one.errors, Each(""));
    ASSERT_THAT(all.errors, Each(""));
    const std::vector<double> losses = one.ofSteps(0, "loss");
    EXPECT_LT(losses.back(), 0.9 * losses.front());
    for (int rank = 0; rank < static_cast<int>(all.errors.size()); ++rank) expectNear(all.ofSteps(rank, "loss"), losses, 1e-2);
  }
}

std::vector<bool> skippedOf(const WorldOutcome& outcome, int rank) {
  std::vector<bool> skipped;
  for (const Json& step : outcome.stepsOf[static_cast<std::size_t>(rank)]) skipped.push_back(step.at("skipped").get<bool>());
  return skipped;
}

TEST(Fp16, RandomPlansFollowTheCurveOfOneDeviceInFp32) {
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(sweep(1, 20)); ++seed) {
    const Plan plan = randomPlan(seed, randomModel(seed), kBatch);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(plan));
    const WorldOutcome one = trainInThreads(planOfOneDevice(plan), runOf(30), text()), all = trainInThreads(in(Precision::Fp16, plan), runOf(30), text());
    ASSERT_THAT(one.errors, Each(""));
    ASSERT_THAT(all.errors, Each(""));
    for (int rank = 0; rank < static_cast<int>(all.errors.size()); ++rank) expectNear(all.ofSteps(rank, "loss"), one.ofSteps(0, "loss"), 1e-2);
  }
}

/// The same checkpoint with a scale of the loss that cannot last.
void raiseLossScale(const std::filesystem::path& checkpoint, double value) {
  auto facts = readJsonFile(checkpoint / "checkpoint.json");
  ASSERT_TRUE(facts);
  (*facts)["loss_scale"]["value"] = value;
  ASSERT_TRUE(writeFileAtomically(checkpoint / "checkpoint.json", facts->dump()));
}

TEST(Fp16, SkipsAStepEverywhereWhereAGradientOverflowsAnywhere) {
  const TemporaryDirectory folder;
  const Plan plan = in(Precision::Fp16, randomPlan(2, randomModel(2), kBatch));
  auto run = runOf(20);
  run.checkpoint = {.every = 4, .keep = 9, .directory = folder.path().string()};
  const WorldOutcome calm = trainInThreads(plan, run, text());
  ASSERT_THAT(calm.errors, Each(""));
  EXPECT_THAT(skippedOf(calm, 0), Each(false));
  raiseLossScale(calm.checkpoints.at(0), 0x1p30);
  run.checkpoint = {};
  const WorldOutcome all = trainInThreads(plan, run, text(), calm.checkpoints[0]);
  ASSERT_THAT(all.errors, Each(""));
  const std::vector<bool> skipped = skippedOf(all, 0);
  const std::vector<double> losses = all.ofSteps(0, "loss"), scales = all.ofSteps(0, "loss_scale");
  const auto skips = std::ranges::count(skipped, true);
  EXPECT_GT(skips, 2);
  ASSERT_LT(skips, 15) << "at a lower scale it goes on";
  for (int rank = 0; rank < static_cast<int>(all.errors.size()); ++rank) {
    EXPECT_EQ(skippedOf(all, rank), skipped) << "rank " << rank;
    EXPECT_EQ(all.ofSteps(rank, "loss_scale"), scales) << "rank " << rank;
    EXPECT_EQ(all.ofSteps(rank, "loss"), losses) << "rank " << rank;
  }
  EXPECT_LT(losses.back(), calm.ofSteps(0, "loss")[3]);
  for (std::size_t step = 0; step + 1 < skipped.size(); ++step)
    EXPECT_EQ(scales[step + 1], skipped[step] ? scales[step] / 2 : scales[step]) << step + 1;
}

TEST(Precision, KeepsTheMastersInCheckpointsOfAnyPlan) {
  for (const Precision precision : {Precision::Bf16, Precision::Fp16}) {
    SCOPED_TRACE(name(precision));
    const TemporaryDirectory folder;
    auto run = runOf(10);
    run.checkpoint = {.every = 5, .keep = 9, .directory = folder.path().string()};
    const Plan before = in(precision, randomPlan(4, randomModel(4), kBatch)), after = in(precision, randomPlan(1004, randomModel(4), kBatch));
    const WorldOutcome whole = trainInThreads(before, run, text());
    ASSERT_THAT(whole.errors, Each(""));
    run.checkpoint = {};
    const WorldOutcome same = trainInThreads(before, run, text(), whole.checkpoints.at(0)), other = trainInThreads(after, run, text(), whole.checkpoints.at(0));
    ASSERT_THAT(same.errors, Each(""));
    ASSERT_THAT(other.errors, Each(""));
    const auto losses = whole.ofSteps(0, "loss");
    const std::vector<double> later(losses.begin() + 5, losses.end());
    EXPECT_EQ(same.ofSteps(0, "loss"), later) << "to the bit: with weights rounded to 16 bits it would not be";
    expectNear(other.ofSteps(0, "loss"), later, 1e-2);
    if (precision != Precision::Fp16) continue;
    EXPECT_EQ(other.ofSteps(0, "loss_scale").front(), whole.ofSteps(0, "loss_scale")[5]) << "the scale goes on too";
  }
}

TEST(Precision, HoldsSixteenBytesAParameter) {
  Plan plan = planOfOneDevice(randomPlan(1, randomModel(1), kBatch));
  const std::int64_t parameters = storedParameters(plan.model, 0, plan.model.unitCount());
  for (const Precision precision : {Precision::Fp32, Precision::Bf16, Precision::Fp16}) {
    const Json state = trainInThreads(in(precision, plan), runOf(1), text()).stepsOf[0].back().at("state_bytes");
    const bool isNarrow = precision != Precision::Fp32;
    EXPECT_EQ(state.at("weights"), (isNarrow ? 2 : 4) * parameters);
    EXPECT_EQ(state.at("gradients"), 4 * parameters);
    EXPECT_EQ(state.at("optimizer"), (isNarrow ? 12 : 8) * parameters) << "two moments, and the masters";
  }
}

TEST(LossScale, IsHalvedByAnOverflowAndDoubledAfterALongTimeWithout) {
  LossScale scale{.value = 4};
  EXPECT_TRUE(scale.onOverflow());
  EXPECT_EQ(scale.value, 2);
  for (std::int64_t step = 0; step < LossScale::kGrowthSteps; ++step) scale.onGoodStep();
  EXPECT_EQ(scale.value, 4);
  EXPECT_TRUE(scale.onOverflow());
  EXPECT_TRUE(scale.onOverflow());
  EXPECT_FALSE(scale.onOverflow()) << "it is 1: a smaller one would not help";
  EXPECT_EQ(scale.skipped, 4);
}

}  // namespace
}  // namespace evenkeel
