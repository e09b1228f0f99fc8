// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/memory.h"

#include <gtest/gtest.h>

#include "core/profile/analytic_profile.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

MemoryByReplica memoryOf(const Plan& plan) {
  const AnalyticProfile profile(plan.model, plan.training);
  return memoryOf(CostModel(plan.cluster, plan.model, plan.training, profile), plan.pipelines);
}

Plan fourStages(std::int64_t localBatch, int microBatch) {
  return planOf(*parseClusterShorthand("1x4:A100-80-SXM"), *modelFromArgument("gpt3-1.3b"),
                {{localBatch,
                  microBatch,
                  {"a100-80-sxm-0/0", "a100-80-sxm-0/1", "a100-80-sxm-0/2", "a100-80-sxm-0/3"},
                  {0, 13, 25, 37, 50}}});
}

TEST(Memory, IsNoFunctionOfTheLocalBatchBeyondTheMicroBatchesInFlight) {
  const auto few = memoryOf(fourStages(8, 2)), many = memoryOf(fourStages(800, 2)), one = memoryOf(fourStages(2, 2));
  EXPECT_EQ(few, many);
  EXPECT_LT(one[0][0][0].activations, many[0][0][0].activations);
}

// Megatron-LM PR #482: rank 0 needs 20 GB, rank 1 50 GB (field-faults): early stages hold more micro-batches.
TEST(Memory, OfEarlierStagesIsLargerByTheMicroBatchesInFlight) {
  const auto memory = memoryOf(fourStages(64, 2));
  EXPECT_EQ(memory[0][1][0].activations.value * 2, memory[0][2][0].activations.value * 3);  // 3 and 2 of the same 12 units
}

TEST(Memory, GrowsWithTheMicroBatchAndTheSequence) {
  Bytes before;
  for (const int microBatch : {1, 2, 3, 4, 8}) {
    const MemoryUse use = memoryOf(fourStages(64, microBatch))[0][0][0];
    EXPECT_GT(use.total(), before);
    before = use.total();
  }
  Plan plan = fourStages(64, 2);
  const Bytes full = memoryOf(plan)[0][0][0].total();
  plan.training.sequenceLength /= 2;
  EXPECT_LT(memoryOf(plan)[0][0][0].total(), full);
}

TEST(Memory, CountsEveryParameterOnceWithItsGradientAndOptimizerState) {
  Plan plan = fourStages(64, 2);
  plan.training.zeroStage = 0;
  Bytes weights, gradients, optimizer;
  const MemoryByReplica memory = memoryOf(plan);
  for (const auto& stage : memory[0]) {
    weights += stage[0].weights;
    gradients += stage[0].gradients;
    optimizer += stage[0].optimizer;
  }
  // Two stages hold the tied embedding.
  const std::int64_t count = storedParameters(plan.model, 0, 50) + plan.model.paddedVocab() * plan.model.hidden;
  EXPECT_EQ(weights.value, 2 * count);
  EXPECT_EQ(gradients.value, 4 * count);
  EXPECT_EQ(optimizer.value, 12 * count);
}

TEST(Memory, HoldsATiedEmbeddingOnceInAPipelineOfOneStage) {
  const Plan plan = planOf(*parseClusterShorthand("1x1:cpu"), *modelFromArgument("tiny-gpt"), {{4, 1, {"cpu-0/0"}, {0, 18}}});
  const MemoryUse use = memoryOf(plan)[0][0][0];
  EXPECT_EQ(use.weights.value, 4 * storedParameters(plan.model, 0, 18));
  EXPECT_EQ((use.gradients + use.optimizer).value, 12 * storedParameters(plan.model, 0, 18));
}

TEST(Memory, IsShardedOverTheHoldersByZero) {
  const std::vector<PipelineText> two = {{8, 1, {"a100-80-sxm-0/0"}, {0, 50}}, {8, 1, {"a100-80-sxm-0/1"}, {0, 50}}};
  Plan plan = planOf(*parseClusterShorthand("1x2:A100-80-SXM"), *modelFromArgument("gpt3-1.3b"), two);
  plan.training.zeroStage = 0;
  const MemoryUse zero0 = memoryOf(plan)[0][0][0];
  plan.training.zeroStage = 1;
  const MemoryUse zero1 = memoryOf(plan)[0][0][0];
  plan.training.zeroStage = 2;
  const MemoryUse zero2 = memoryOf(plan)[0][0][0];
  EXPECT_NEAR(zero1.optimizer / zero0.optimizer, 0.5, 1e-6);
  EXPECT_GE(2 * zero1.optimizer.value, zero0.optimizer.value);  // rounded up, never too little
  EXPECT_EQ(zero1.gradients, zero0.gradients);
  EXPECT_NEAR(zero2.gradients / zero0.gradients, 0.5, 1e-6);
  EXPECT_GT(zero2.transient, zero1.transient) << "what is exchanged of a unit while it is";
}

// A replica without samples was predicted to hold its state alone, and ZeRO-1's ring brought it a part of the others'.
TEST(Memory, OfAReplicaWithoutSamplesHoldsWhatARingBrings) {
  Plan plan = planOf(*parseClusterShorthand("1x2:cpu"), *modelFromArgument("tiny-gpt"), {{4, 1, {"cpu-0/0"}, {0, 18}}});
  plan.pipelines[0].stages[0].dp = 2;
  plan.pipelines[0].stages[0].devices.push_back({0, 1});
  plan.training.zeroStage = 0;
  EXPECT_EQ(memoryOf(plan)[0][0][1].transient, Bytes{});
  plan.training.zeroStage = 1;
  const std::vector<MemoryUse> replicas = memoryOf(plan)[0][0];
  EXPECT_EQ(replicas[1].activations, Bytes{});
  const double half = 2.0 * static_cast<double>(storedParameters(plan.model, 0, 18));
  EXPECT_NEAR(static_cast<double>(replicas[1].transient.value), half, 4 * 18);
  EXPECT_GT(replicas[0].activations + replicas[0].transient, replicas[1].transient) << "where there are activations they are gone by then";
  plan.training.gradientSync = GradientSync::Tensor;
  EXPECT_LT(static_cast<double>(memoryOf(plan)[0][0][1].transient.value), half / 4);
}

TEST(Memory, OfATiedEmbeddingBetweenTwoStagesIsNotSharedByZero2) {
  const std::vector<PipelineText> two = {{8, 1, {"a100-80-sxm-0/0", "a100-80-sxm-0/1"}, {0, 25, 50}}, {8, 1, {"a100-80-sxm-0/2", "a100-80-sxm-0/3"}, {0, 25, 50}}};
  Plan plan = planOf(*parseClusterShorthand("1x4:A100-80-SXM"), *modelFromArgument("gpt3-1.3b"), two);
  plan.training.zeroStage = 1;
  const MemoryUse zero1 = memoryOf(plan)[0][0][0];
  plan.training.zeroStage = 2;
  EXPECT_NEAR(static_cast<double>(memoryOf(plan)[0][0][0].gradients.value),
              static_cast<double>(zero1.gradients.value) / 2 + 4.0 * static_cast<double>(plan.model.paddedVocab() * plan.model.hidden), 100);
}

TEST(Memory, ShrinksWithRecomputationAndTp) {
  Plan plan = fourStages(64, 4);
  const MemoryUse plain = memoryOf(plan)[0][0][0];
  plan.pipelines[0].stages[0].recompute = {{{1, 13}, {Op::Score, Op::Softmax, Op::AttentionDropout, Op::Context}}};
  EXPECT_LT(memoryOf(plan)[0][0][0].total(), plain.total());
}

// The padding of device-wise sync costs memory.
TEST(Memory, OfDeviceWiseSyncHoldsGradientsOfTheWholeConnectedSet) {
  const std::vector<PipelineText> two = {{8, 1, {"a100-80-sxm-0/0", "a100-80-sxm-0/1"}, {0, 20, 50}},
                                         {8, 1, {"a100-80-sxm-0/2", "a100-80-sxm-0/3"}, {0, 30, 50}}};
  Plan plan = planOf(*parseClusterShorthand("1x4:A100-80-SXM"), *modelFromArgument("gpt3-1.3b"), two);
  const Bytes blockWise = memoryOf(plan)[0][0][0].gradients;
  plan.training.gradientSync = GradientSync::Device;
  EXPECT_EQ(memoryOf(plan)[0][0][0].gradients.value, blockWise.value + 4 * storedParameters(plan.model, 0, 50));
}

TEST(Memory, OfADeviceThatNobodySharesAnythingWithIsNotPadded) {
  Plan plan = planOf(*parseClusterShorthand("1x1:cpu"), *modelFromArgument("tiny-gpt"), {{4, 1, {"cpu-0/0"}, {0, 18}}});
  const MemoryUse blockWise = memoryOf(plan)[0][0][0];
  plan.training.gradientSync = GradientSync::Device;
  EXPECT_EQ(memoryOf(plan)[0][0][0], blockWise);
}

/// A device beside a tp group of two, tiny-gpt in one stage each.
Plan oneBesideTwo() {
  Plan plan = planOf(*parseClusterShorthand("1x3:cpu"), *modelFromArgument("tiny-gpt"), {{4, 1, {"cpu-0/0"}, {0, 18}}, {4, 1, {"cpu-0/1"}, {0, 18}}});
  plan.pipelines[1].stages[0].tp = 2;
  plan.pipelines[1].stages[0].devices.push_back({0, 2});
  plan.training.zeroStage = 0;
  return plan;
}

TEST(Memory, HoldsTwiceWhatOthersCutElsewhere) {
  const Plan plan = oneBesideTwo();
  std::int64_t split = 0;
  for (int unit = 0; unit < 17; ++unit) {
    for (const TensorSpec& tensor : tensorsOf(plan.model, unit)) split += tensor.split == TpSplit::None ? 0 : tensor.elements();
  }
  const MemoryByReplica memory = memoryOf(plan);
  const std::int64_t stored = storedParameters(plan.model, 0, 18);
  EXPECT_EQ(memory[0][0][0].weights.value, 4 * (stored + split));
  EXPECT_EQ(memory[0][0][0].gradients.value, 4 * (stored + split));
  EXPECT_EQ(memory[0][0][0].optimizer.value, 8 * stored);
  EXPECT_EQ(memory[1][0][0].weights.value, 4 * (stored - split / 2)) << "no cut of the other lies inside of a shard";
}

TEST(Memory, KeepsNoMasksOfADropoutThatDoesNotRun) {
  const Plan plan = planOf(*parseClusterShorthand("1x1:cpu"), *modelFromArgument("tiny-gpt"), {{4, 1, {"cpu-0/0"}, {0, 18}}});
  const AnalyticProfile usual(plan.model, plan.training), dropping(plan.model, plan.training, {.dropout = true});
  const auto activations = [&](const Profile& profile) {
    return memoryOf(CostModel(plan.cluster, plan.model, plan.training, profile), plan.pipelines)[0][0][0].activations.value;
  };
  const std::int64_t tokens = plan.training.sequenceLength, hidden = plan.model.hidden, scores = tokens * tokens * plan.model.heads;
  const std::int64_t ofLayer = 2 * tokens * hidden + scores + 4 * scores;  // masks of a byte, and the scores once more when dropped
  EXPECT_EQ(activations(dropping) - activations(usual), plan.model.layers * ofLayer + tokens * hidden);
}

}  // namespace
}  // namespace evenkeel
