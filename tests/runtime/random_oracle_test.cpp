// SPDX-License-Identifier: GPL-3.0-or-later
// Random valid plans train the curve of one device: all that a plan may combine at once, ranks as threads of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plan/features.h"
#include "tests/runtime/random_plans.h"
#include "tests/runtime/thread_world.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

constexpr std::int64_t kSteps = 10, kBatch = 11;

const std::string& text() {
  static const std::string text = [] {
    std::string lines;
    for (int i = 0; i < 300; ++i)
      lines += std::to_string(i * i % 97) + " boats of " + std::to_string(i) + " keep an even keel.\n";
    return lines;
  }();
  return text;
}

/// Clipping and dropout in half of the seeds each.
Run runOf(std::uint64_t seed) {
  Run run;
  run.gradientClip = seed % 4 < 2 ? 0.5 : 0;
  run.dropout = seed % 2 == 0 ? 0.2 : 0;
  run.learningRate.schedule = seed % 3 == 0 ? Run::LearningRate::Schedule::Linear : Run::LearningRate::Schedule::Cosine;
  run.steps = kSteps;
  run.learningRate.peak = 3e-3;
  run.learningRate.warmupSteps = 2;
  return run;
}

std::string describe(const Plan& plan) { return toJson(plan)["pipelines"].dump(); }

TEST(RandomPlans, TrainTheCurveOfOneDevice) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(sweep(6, 60)); ++seed) {
    const Plan plan = randomPlan(seed, randomModel(seed), kBatch);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(plan));
    ASSERT_THAT(notLaunchable(plan, ownRuntime()), ::testing::IsEmpty());
    const auto run = runOf(seed);
    const WorldOutcome one = trainInThreads(planOfOneDevice(plan), run, text()), all = trainInThreads(plan, run, text());
    ASSERT_THAT(one.errors, ::testing::Each(""));
    ASSERT_THAT(all.errors, ::testing::Each(""));
    const std::vector<double> losses = one.ofSteps(0, "loss"), norms = one.ofSteps(0, "grad_norm");
    ASSERT_EQ(losses.size(), static_cast<std::size_t>(kSteps));
    EXPECT_LT(losses.back(), 0.95 * losses.front()) << "it must have learned something to compare";
    for (int rank = 0; rank < static_cast<int>(all.errors.size()); ++rank) {
      for (std::size_t step = 0; step < losses.size(); ++step) {
        ASSERT_NEAR(all.ofSteps(rank, "loss").at(step), losses[step], 1e-5 * losses[step]) << "step " << step + 1;
        ASSERT_NEAR(all.ofSteps(rank, "grad_norm").at(step), norms[step], 1e-5 * norms[step]) << "step " << step + 1;
      }
    }
  }
}

}  // namespace
}  // namespace evenkeel
