// SPDX-License-Identifier: GPL-3.0-or-later
// ZeRO-2 where its rounds are not the same for all: unlike numbers of micro-batches, replicas without a sample, tied embeddings. DeepSpeed
// offers no ZeRO-2 for pipelines; a lost or doubled contribution would show in the gradient's norm of the first step.
#include "runtime/train/unit_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/runtime/random_plans.h"
#include "tests/runtime/thread_world.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::Each;

TEST(RoundOf, GivesEveryMicroBatchARoundOfItsOwnAndTheLastOneTheLast) {
  for (int rounds = 1; rounds <= 12; ++rounds) {
    for (int count = 1; count <= rounds; ++count) {
      std::set<int> taken;
      for (int m = 0; m < count; ++m) taken.insert(roundOf(m, count, rounds));
      EXPECT_EQ(taken.size(), static_cast<std::size_t>(count));
      EXPECT_GE(*taken.begin(), 0);
      EXPECT_EQ(*taken.rbegin(), rounds - 1);
    }
  }
}

Model model(bool isTied) {
  Model model = randomModel(3);
  model.tiedEmbeddings = isTied;
  return model;
}

/// Steps of rank 0, or those of one device.
std::vector<double> curveOf(const Plan& plan, const std::string& field) {
  Run run;
  run.steps = 4;
  run.learningRate.peak = 3e-3;
  const WorldOutcome outcome = trainInThreads(plan, run, std::string(300, 'a') + std::string(500, 'b') + "cdefghijklmnopqrstuvwxyz");
  EXPECT_THAT(outcome.errors, Each(""));
  return outcome.ofSteps(0, field);
}

void expectCurveOfOneDevice(Plan plan) {
  plan.training.sequenceLength = 16;
  plan.training.zeroStage = 2;
  for (const char* const field : {"loss", "grad_norm"}) {
    const auto shared = curveOf(plan, field), one = curveOf(planOfOneDevice(plan), field);
    ASSERT_EQ(shared.size(), one.size());
    for (std::size_t step = 0; step < one.size(); ++step) EXPECT_NEAR(shared[step], one[step], 1e-5 * one[step]) << field << " of step " << step + 1;
  }
}

TEST(UnitExchange, SumsOverUnlikeNumbersOfMicroBatches) {
  for (const bool isTied : {false, true}) {
    expectCurveOfOneDevice(planOf(*parseClusterShorthand("1x3:cpu"), model(isTied), {{7, 1, {"cpu-0/0"}, {0, 6}}, {3, 2, {"cpu-0/1"}, {0, 6}}, {1, 1, {"cpu-0/2"}, {0, 6}}}));
  }
}

TEST(UnitExchange, SumsOverPipelinesThatAreCutDifferently) {
  for (const bool isTied : {false, true}) {
    expectCurveOfOneDevice(planOf(*parseClusterShorthand("1x6:cpu"), model(isTied),
                                  {{5, 1, {"cpu-0/0", "cpu-0/1", "cpu-0/2"}, {0, 2, 3, 6}}, {4, 2, {"cpu-0/3", "cpu-0/4"}, {0, 5, 6}}, {2, 1, {"cpu-0/5"}, {0, 6}}}));
  }
}

TEST(UnitExchange, NeedsNoSampleInEveryReplica) {
  Plan plan = planOf(*parseClusterShorthand("1x4:cpu"), model(true), {{7, 3, {"cpu-0/0"}, {0, 6}}, {4, 1, {"cpu-0/3"}, {0, 6}}});
  Stage& stage = plan.pipelines[0].stages[0];
  stage.dp = 3;
  stage.devices = {{0, 0}, {0, 1}, {0, 2}};
  stage.shares = {2, 0, 1};  // and the last micro-batch of one sample leaves two of them without
  expectCurveOfOneDevice(plan);
}

}  // namespace
}  // namespace evenkeel
