// SPDX-License-Identifier: GPL-3.0-or-later
// What the sync modes and ZeRO cost each rank, as the ranks themselves report it.
#include "runtime/train/holder_sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plan/features.h"
#include "tests/runtime/random_plans.h"
#include "tests/runtime/thread_world.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::Each;

Model model() {
  Model model = *modelFromArgument("tiny-gpt");
  model.layers = 2;
  model.hidden = 32;
  model.heads = model.kvHeads = 4;
  model.headDim = 8;
  model.ffn = 64;
  model.context = 16;
  model.tiedEmbeddings = false;
  return model;
}

/// One pipeline of two stages, the second of two shards, beside one pipeline of one device: four ranks, unlike cuts.
Plan unlikePlan(GradientSync sync, int zeroStage) {
  Plan plan = planOf(*parseClusterShorthand("1x4:cpu"), model(),
                     {{4, 2, {"cpu-0/0", "cpu-0/1"}, {0, 3, 6}}, {2, 1, {"cpu-0/3"}, {0, 6}}});
  Stage& stage = plan.pipelines[0].stages[1];
  stage.tp = 2;
  stage.devices.push_back({0, 2});
  plan.training.gradientSync = sync;
  plan.training.zeroStage = zeroStage;
  return plan;
}

/// The fields of the last step of each rank.
std::vector<Json> lastSteps(const Plan& plan) {
  Run run;
  run.steps = 2;
  const WorldOutcome outcome = trainInThreads(plan, run, std::string(2000, 'x'));
  EXPECT_THAT(outcome.errors, Each(""));
  std::vector<Json> last;
  for (const auto& steps : outcome.stepsOf) last.push_back(steps.back());
  return last;
}

std::int64_t held(const Json& step, const char* what) { return step.at("state_bytes").at(what).get<std::int64_t>(); }

std::int64_t parametersOf(const Plan& plan) { return storedParameters(plan.model, 0, plan.model.unitCount()); }

std::int64_t heldElements(const BlockMap& map, int rank) {
  std::int64_t elements = 0;
  for (const HeldBlock& block : heldBlocks(map, rank)) elements += map.blocks[block.block].elements;
  return elements;
}

TEST(HolderSync, SendsTheSameInFewerCallsBlockByBlock) {
  const auto block = lastSteps(unlikePlan(GradientSync::Block, 0)), tensor = lastSteps(unlikePlan(GradientSync::Tensor, 0));
  for (std::size_t r = 0; r < 4; ++r) {
    const auto calls = tensor[r].at("sync_calls").get<double>();
    EXPECT_NEAR(block[r].at("sync_bytes").get<double>(), tensor[r].at("sync_bytes").get<double>(), calls) << "each is rounded";
    EXPECT_LT(3 * block[r].at("sync_calls").get<int>(), tensor[r].at("sync_calls").get<int>());
    EXPECT_EQ(held(block[r], "sync"), 0);
    EXPECT_EQ(held(tensor[r], "sync"), 0);
  }
  EXPECT_EQ(block[0].at("sync_calls"), 1) << "stage 0 is held by its rank and the rank of the other pipeline";
  EXPECT_EQ(block[3].at("sync_calls"), 4) << "stage 0; both shards together, and each alone";
}

TEST(HolderSync, PadsWhatARankDoesNotHoldDeviceByDevice) {
  const Plan plan = unlikePlan(GradientSync::Device, 0);
  const auto block = lastSteps(unlikePlan(GradientSync::Block, 0)), device = lastSteps(plan);
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(device[r].at("sync_calls"), 1);
    EXPECT_EQ(held(device[r], "sync"), 4 * parametersOf(plan)) << "all are connected through rank 3";
    EXPECT_EQ(device[r].at("sync_bytes"), 2 * 3 * 4 * parametersOf(plan) / 4);
    EXPECT_GT(device[r].at("sync_bytes"), block[r].at("sync_bytes"));
  }
}

TEST(HolderSync, SharesTheOptimizerAmongTheHoldersWithZero) {
  const Plan plan = unlikePlan(GradientSync::Block, 1);
  const auto whole = lastSteps(unlikePlan(GradientSync::Block, 0)), shared = lastSteps(plan);
  std::int64_t moments = 0;
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(held(whole[r], "optimizer"), 2 * 4 * heldElements(blockMap(plan), static_cast<int>(r)));
    EXPECT_NEAR(static_cast<double>(held(shared[r], "optimizer")), static_cast<double>(held(whole[r], "optimizer")) / 2,
                0.02 * static_cast<double>(held(whole[r], "optimizer")))
        << "nearly everything has two holders";
    EXPECT_EQ(held(shared[r], "gradients"), held(whole[r], "gradients"));
    EXPECT_EQ(shared[r].at("sync_bytes"), whole[r].at("sync_bytes")) << "a reduce-scatter and an all-gather are an all-reduce";
    moments += held(shared[r], "optimizer");
  }
  EXPECT_EQ(moments, 2 * 4 * parametersOf(plan)) << "of the whole job, the state of every parameter once";
}

TEST(HolderSync, SharesTheGradientsTooWithZero2) {
  for (const GradientSync sync : {GradientSync::Block, GradientSync::Tensor}) {
    const Plan plan = unlikePlan(sync, 2);
    const auto whole = lastSteps(unlikePlan(sync, 0)), shared = lastSteps(plan), optimizerOnly = lastSteps(unlikePlan(sync, 1));
    std::int64_t gradients = 0, moments = 0;
    for (std::size_t r = 0; r < 4; ++r) {
      EXPECT_NEAR(static_cast<double>(held(shared[r], "gradients")), static_cast<double>(heldElements(blockMap(plan), static_cast<int>(r))) * 4 / 2,
                  0.03 * static_cast<double>(held(whole[r], "gradients")))
          << "nearly everything has two holders";
      EXPECT_EQ(2 * held(shared[r], "gradients"), held(shared[r], "optimizer"));
      EXPECT_GT(held(shared[r], "sync"), 0) << "what is exchanged of a unit";
      EXPECT_GT(shared[r].at("sync_bytes"), optimizerOnly[r].at("sync_bytes")) << "the gradients of every micro-batch, not their sum";
      gradients += held(shared[r], "gradients");
      moments += held(shared[r], "optimizer");
    }
    EXPECT_EQ(gradients, 4 * parametersOf(plan)) << "of the whole job, the sum of every gradient once";
    EXPECT_EQ(moments, 2 * 4 * parametersOf(plan));
  }
}

TEST(HolderSync, SendsEachOwnerHisPartOfEveryMicroBatchWithZero2) {
  // Two alike ranks: half of the gradients goes to the other one with each micro-batch, and half of the weights comes back.
  Plan plan = planOf(*parseClusterShorthand("1x2:cpu"), model(), {{6, 2, {"cpu-0/0"}, {0, 6}}, {4, 2, {"cpu-0/1"}, {0, 6}}});
  plan.training.zeroStage = 2;
  const auto steps = lastSteps(plan);
  const auto half = static_cast<double>(4 * parametersOf(plan) / 2);
  EXPECT_NEAR(steps[0].at("sync_bytes").get<double>(), (3 + 1) * half, 0.01 * half);
  EXPECT_NEAR(steps[1].at("sync_bytes").get<double>(), (2 + 1) * half, 0.01 * half);
}

TEST(HolderSync, HasTheSameBitsInEveryRun) {
  for (const int zeroStage : {0, 1, 2}) {
    for (const GradientSync sync : {GradientSync::Block, GradientSync::Tensor}) {
      const auto once = lastSteps(unlikePlan(sync, zeroStage)), again = lastSteps(unlikePlan(sync, zeroStage));
      EXPECT_EQ(once[0].at("grad_norm"), again[0].at("grad_norm")) << zeroStage;
      EXPECT_EQ(once[0].at("loss"), again[0].at("loss")) << zeroStage;
    }
  }
}

TEST(HolderSync, CannotShareWhatIsPadded) {
  EXPECT_THAT(notLaunchable(unlikePlan(GradientSync::Device, 1), ownRuntime()), ::testing::SizeIs(1));
}

}  // namespace
}  // namespace evenkeel
