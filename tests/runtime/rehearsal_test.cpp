// SPDX-License-Identifier: GPL-3.0-or-later
// Virtual devices play plans that nobody could train here: real processes and messages, slept computation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/worker_run.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

/// Two pipelines of A100s, one of them of two stages; every time is a number that can be recognised.
Plan predictedPlan() {
  const Cluster cluster = *parseClusterShorthand("1x3:A100-80-SXM");
  const auto d = [&](std::size_t index) { return cluster.nameOf(cluster.devices()[index]); };
  Plan plan = planOf(cluster, *modelFromArgument("gpt3-1.3b"), {{5, 2, {d(0), d(1)}, {0, 25, 50}}, {2, 1, {d(2)}, {0, 50}}});
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages)
      stage.predicted = StagePrediction{.forward = fromMilliseconds(10), .backward = fromMilliseconds(20), .send = fromMilliseconds(pipeline.stages.size() > 1 ? 3 : 0), .inFlight = 1, .memory = {}};
  }
  plan.predicted = PlanPrediction{.iteration = fromMilliseconds(140), .pipeline = fromMilliseconds(120), .sync = fromMilliseconds(12), .optimizer = fromMilliseconds(8)};
  return plan;
}

TEST(Rehearsal, PlaysAPlanOfDevicesThatAreNotHere) {
  WorkerRun run({.plan = predictedPlan(), .steps = 3, .rehearse = true});
  run.start();
  const auto outcomes = run.finish();
  for (const RankOutcome& outcome : outcomes) {
    ASSERT_EQ(outcome.exitStatus, 0) << outcome.log;
    ASSERT_EQ(outcome.ofSteps("iteration_ms").size(), 3U);
    // No upper bounds: a busy machine may wake us late.
    for (const double optimizer : outcome.ofSteps("optimizer_ms")) EXPECT_NEAR(optimizer, 8, 1e-6);
    for (const double sync : outcome.ofSteps("sync_ms")) EXPECT_NEAR(sync, 12, 1e-6);
  }
  // Micro-batches of 2, 2 and 1 samples. The second stage forwards at 13, 43 and 73 ms and is done with its backwards at 43, 73
  // and 88; the first one's backwards begin at 46, 76 and 96 ms, and the last takes 10; then come sync and optimizer.
  for (const double compute : outcomes[0].ofSteps("compute_ms")) EXPECT_GE(compute, 2.5 * 30 - 0.1);
  for (const double iteration : outcomes[0].ofSteps("iteration_ms")) EXPECT_GE(iteration, 106 + 20 - 0.1);
}

TEST(Rehearsal, NeedsPredictions) {
  Plan plan = predictedPlan();
  plan.pipelines[0].stages[1].predicted.reset();
  WorkerRun run({.plan = plan, .steps = 1, .rehearse = true});
  run.start();
  const auto outcomes = run.finish();
  EXPECT_EQ(outcomes[0].exitStatus, 1);
  EXPECT_THAT(outcomes[0].log, ::testing::HasSubstr("its plan predicts no times"));
}

}  // namespace
}  // namespace evenkeel
