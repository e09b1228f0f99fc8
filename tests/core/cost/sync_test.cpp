// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/sync.h"

#include <gtest/gtest.h>

#include "core/cost/evaluate.h"
#include "core/profile/analytic_profile.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

SyncTime syncOf(const Plan& plan) {
  const AnalyticProfile profile(plan.model, plan.training);
  return syncTime(CostModel(plan.cluster, plan.model, plan.training, profile), plan.pipelines);
}

Plan twoNodes(const std::vector<int>& cuts = {0, 25, 50}) {
  Plan plan =
      planOf(*parseClusterShorthand("2x2:A100-80-SXM"), *modelFromArgument("gpt3-1.3b"),
             {{8, 1, {"a100-80-sxm-0/0", "a100-80-sxm-0/1"}, {0, 25, 50}}, {8, 1, {"a100-80-sxm-1/0", "a100-80-sxm-1/1"}, cuts}});
  plan.training.zeroStage = 0;
  return plan;
}

TEST(Sync, IsNothingWhereEveryParameterHasOneHolder) {
  Plan plan = twoNodes();
  plan.model.tiedEmbeddings = false;
  plan.pipelines.pop_back();
  plan.training.globalBatch = 8;
  EXPECT_EQ(syncOf(plan).sync, Seconds{});
  EXPECT_GT(syncOf(plan).optimizer, Seconds{});
}

TEST(Sync, JoinsTheTwoEndsOfATiedEmbeddingInsideAPipeline) {
  Plan plan = twoNodes();
  plan.pipelines.pop_back();
  plan.training.globalBatch = 8;
  EXPECT_GT(syncOf(plan).sync, Seconds{});
}

TEST(Sync, OfTwoHoldersSendsEveryGradientOnceOverTheLinkAndBack) {
  Plan plan = twoNodes();
  plan.model.tiedEmbeddings = false;
  const std::int64_t parameters = std::max(storedParameters(plan.model, 0, 25), storedParameters(plan.model, 25, 50));
  const double expected = 4.0 * static_cast<double>(parameters) / plan.cluster.nodes[0].nic.bandwidth.value;
  EXPECT_NEAR(syncOf(plan).sync.value / expected, 1.0, 0.01);  // and some latency
}

// Public Metis: inter-node bandwidth has no effect (field-faults).
TEST(Sync, MovesWithTheSlowestLinkOfItsHolders) {
  Plan plan = twoNodes();
  const Seconds before = syncOf(plan).sync;
  plan.cluster.nodes[1].nic.bandwidth = 0.5 * plan.cluster.nodes[1].nic.bandwidth;
  EXPECT_NEAR(syncOf(plan).sync / before, 2.0, 0.05);
}

TEST(Sync, GoesInsideTheNodesFirstWhereEveryDeviceHasItsNic) {
  Plan plan = planOf(*parseClusterShorthand("2x2:A100-80-SXM"), *modelFromArgument("gpt3-1.3b"),
                     {{4, 1, {"a100-80-sxm-0/0"}, {0, 50}},
                      {4, 1, {"a100-80-sxm-0/1"}, {0, 50}},
                      {4, 1, {"a100-80-sxm-1/0"}, {0, 50}},
                      {4, 1, {"a100-80-sxm-1/1"}, {0, 50}}});
  plan.training.zeroStage = 0;
  plan.model.tiedEmbeddings = false;
  const double bytes = 8.0 * static_cast<double>(storedParameters(plan.model, 0, 50));
  const double intra = plan.cluster.nodes[0].intra.bandwidth.value, nic = plan.cluster.nodes[0].nic.bandwidth.value;
  EXPECT_NEAR(syncOf(plan).sync.value / (bytes / 2 / intra + bytes / 4 / nic), 1.0, 0.01);  // and some latency
  for (Node& node : plan.cluster.nodes) node.nicPerDevice = false;
  EXPECT_NEAR(syncOf(plan).sync.value / (0.75 * bytes / nic), 1.0, 0.01);  // one ring through all four
}

TEST(Sync, SharesANodesOneNicAmongTheRingsThatLeaveIt) {
  Plan plan = twoNodes();
  plan.model.tiedEmbeddings = false;  // each ring of two devices in two nodes
  for (Node& node : plan.cluster.nodes) node.nicPerDevice = true;
  const Seconds own = syncOf(plan).sync;
  for (Node& node : plan.cluster.nodes) node.nicPerDevice = false;
  EXPECT_NEAR(syncOf(plan).sync / own, 2.0, 0.05);
}

// Paper: block-wise is 1.38-1.71x faster than tensor-wise and 1.56-2.74x faster than device-wise. (With a NIC for each device a
// device-wise collective goes through all of them at once and may win where stages are of unlike size.)
TEST(Sync, IsFastestBlockWise) {
  Plan plan = twoNodes({0, 17, 50});
  for (Node& node : plan.cluster.nodes) node.nicPerDevice = false;
  const Seconds block = syncOf(plan).sync;
  plan.training.gradientSync = GradientSync::Tensor;
  EXPECT_GT(syncOf(plan).sync, block);
  plan.training.gradientSync = GradientSync::Device;
  EXPECT_GT(syncOf(plan).sync, block);
}

TEST(Sync, ShardsTheOptimizerWithZero) {
  Plan plan = twoNodes();
  const SyncTime whole = syncOf(plan);
  plan.training.zeroStage = 1;
  EXPECT_NEAR(syncOf(plan).optimizer / whole.optimizer, 0.5, 0.01);
}

/// One pipeline of two stages beside one of one stage, on devices alike.
Plan unlikeDepths() {
  Plan plan = planOf(*parseClusterShorthand("3x1:A100-80-SXM"), *modelFromArgument("gpt3-1.3b"),
                     {{8, 1, {"a100-80-sxm-0/0", "a100-80-sxm-1/0"}, {0, 25, 50}}, {8, 1, {"a100-80-sxm-2/0"}, {0, 50}}});
  plan.model.tiedEmbeddings = false;
  return plan;
}

Seconds reportedSync(const Plan& plan, const RuntimeTraits& runtime = evenkeelRuntime()) {
  const AnalyticProfile profile(plan.model, plan.training);
  return evaluate(plan, profile, false, runtime).plan.predicted->sync;
}

TEST(Sync, BeginsAtEachStageWhenItsOwnLastBackwardEnds) {
  Plan plan = unlikeDepths();
  plan.training.zeroStage = 1;
  const AnalyticProfile profile(plan.model, plan.training);
  const CostModel model(plan.cluster, plan.model, plan.training, profile);
  const Seconds ring = syncOf(plan).sync / 2;  // the lone device takes both rings, each other one its own
  // The second stage is done early, but its ring waits for the pipeline of one stage, which is the slower one.
  const SyncTime late = syncTime(model, plan.pipelines, {{Seconds{10}, Seconds{9}}, {Seconds{12}}});
  EXPECT_NEAR(late.sync / ring, 2, 0.15);
  EXPECT_NEAR(late.busiest / ring, 2, 0.15);
  // Where it is done early too, its ring is over before the first stage ends.
  const SyncTime early = syncTime(model, plan.pipelines, {{Seconds{12}, Seconds{9}}, {Seconds{9}}});
  EXPECT_NEAR(early.sync / ring, 1, 0.15);
  EXPECT_NEAR(early.busiest / ring, 2, 0.15);
}

TEST(Sync, WithoutZeroOrPaddingRunsBesideTheLastBackward) {
  Plan plan = unlikeDepths();
  plan.training.zeroStage = 0;
  RuntimeTraits behind = evenkeelRuntime();
  behind.syncsBesideBackward = false;
  EXPECT_LT(reportedSync(plan), 0.9 * reportedSync(plan, behind));
  plan.training.zeroStage = 1;  // shards are summed behind it
  EXPECT_EQ(reportedSync(plan), reportedSync(plan, behind));
  plan.training.zeroStage = 0;
  plan.training.gradientSync = GradientSync::Tensor;
  EXPECT_LT(reportedSync(plan), 0.9 * reportedSync(plan, behind));
  plan.training.gradientSync = GradientSync::Device;  // the padded buffer is filled when all is there
  EXPECT_EQ(reportedSync(plan), reportedSync(plan, behind));
}

TEST(Sync, OfZero2TakesItsTimeAtEveryMicroBatch) {
  Plan plan = unlikeDepths();
  const auto iteration = [&](int zeroStage) {
    plan.training.zeroStage = zeroStage;
    const AnalyticProfile profile(plan.model, plan.training);
    return iterationTime(CostModel(plan.cluster, plan.model, plan.training, profile), plan.pipelines);
  };
  const Seconds once = iteration(1), always = iteration(2);
  const AnalyticProfile profile(plan.model, plan.training);
  const CostModel model(plan.cluster, plan.model, plan.training, profile);
  const StageEnds exchanges = exchangeTimes(model, plan.pipelines);
  ASSERT_EQ(exchanges.size(), plan.pipelines.size());
  Seconds least{1e9};
  for (std::size_t p = 0; p < exchanges.size(); ++p) {
    Seconds most;
    for (const Seconds time : exchanges[p]) most = std::max(most, time);
    EXPECT_GT(most.value, 0);
    least = std::min(least, static_cast<double>(plan.pipelines[p].microBatchCount() - 1) * most);
  }
  EXPECT_GT(always - once, 0.9 * least) << "all micro-batches but the last one, whose sums were there before";
}

// Public planners draw switches that limit nothing (field-faults).
TEST(Sync, SharesWhatASwitchLetsThroughInTotal) {
  Plan plan = planOf(
      *parseClusterShorthand("4x1:A100-80-SXM"), *modelFromArgument("gpt3-1.3b"),
      {{4, 1, {"a100-80-sxm-0/0", "a100-80-sxm-1/0"}, {0, 25, 50}}, {4, 1, {"a100-80-sxm-2/0", "a100-80-sxm-3/0"}, {0, 25, 50}}});
  plan.model.tiedEmbeddings = false;
  plan.training.zeroStage = 0;
  const BytesPerSecond nic = plan.cluster.nodes[0].nic.bandwidth;
  Switch leaf{.name = "leaf", .members = {}, .bandwidth = nic, .total = {}, .latency = {}};
  for (const Node& node : plan.cluster.nodes) leaf.members.push_back(node.name);
  plan.cluster.switches = {leaf};
  const Seconds unlimited = syncOf(plan).sync;
  plan.cluster.switches[0].total = 8.0 * nic;
  EXPECT_EQ(syncOf(plan).sync, unlimited);
  // Two rings of two members: four steps at once.
  plan.cluster.switches[0].total = 2.0 * nic;
  EXPECT_NEAR(syncOf(plan).sync / unlimited, 2, 0.05);
  plan.cluster.switches[0].total = nic;
  EXPECT_NEAR(syncOf(plan).sync / unlimited, 4, 0.05);
}

}  // namespace
}  // namespace evenkeel
