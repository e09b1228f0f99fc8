// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/stage_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/profile/analytic_profile.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;

/// Times of the first pipeline of a plan.
PipelineTimes timesOf(const Plan& plan) {
  const AnalyticProfile profile(plan.model, plan.training);
  return pipelineTimes(CostModel(plan.cluster, plan.model, plan.training, profile), plan.pipelines.front());
}

Plan acrossNodes() {
  return planOf(*parseClusterShorthand("2x4:A100-80-SXM"), *modelFromArgument("gpt3-1.3b"),
                {{8, 2, {"a100-80-sxm-0/0", "a100-80-sxm-1/0"}, {0, 25, 50}}});
}

TEST(StageTime, SumsItsUnitsAndOnlyTheLastStageSendsNothing) {
  const PipelineTimes times = timesOf(acrossNodes());
  EXPECT_GT(times.full[0].forward, Seconds{});
  EXPECT_GT(times.full[0].send, Seconds{});
  EXPECT_EQ(times.full[1].send, Seconds{});
  EXPECT_EQ(times.full, times.last);
}

// alpa #459, SimAI #208, public Metis: a bandwidth that is drawn and changes nothing (field-faults).
TEST(StageTime, MovesWithEveryBandwidthAndLatencyThatIsDrawnOnTheWay) {
  const Plan base = acrossNodes();
  const Seconds send = timesOf(base).full[0].send;
  Plan plan = base;
  plan.cluster.nodes[1].nic.bandwidth = 0.5 * plan.cluster.nodes[1].nic.bandwidth;
  EXPECT_GT(timesOf(plan).full[0].send, send);
  plan = base;
  plan.cluster.nodes[0].nic.latency = 10 * plan.cluster.nodes[0].nic.latency;
  EXPECT_GT(timesOf(plan).full[0].send, send);
  plan = base;
  plan.cluster.links = {{0, 1, {{1e9}, {1e-5}}}};
  EXPECT_GT(timesOf(plan).full[0].send, send);
  plan = base;
  plan.cluster.switches = {{"leaf", {"a100-80-sxm-0", "a100-80-sxm-1"}, {1e9}, {}, {1e-6}}};
  EXPECT_GT(timesOf(plan).full[0].send, send);

  Plan inside = planOf(base.cluster, base.model, {{8, 2, {"a100-80-sxm-0/0", "a100-80-sxm-0/1"}, {0, 25, 50}}});
  const StageTime before = timesOf(inside).full[0];
  inside.cluster.nodes[0].intra.bandwidth = 0.5 * inside.cluster.nodes[0].intra.bandwidth;
  EXPECT_GT(timesOf(inside).full[0].send, before.send);
  EXPECT_EQ(timesOf(inside).full[0].forward, before.forward);
}

TEST(StageTime, FlowsShareWhatASwitchLetsThroughInTotal) {
  Plan plan = planOf(*parseClusterShorthand("2x4:A100-80-SXM"), *modelFromArgument("gpt3-1.3b"),
                     {{8, 4, {"a100-80-sxm-0/0", "a100-80-sxm-1/0"}, {0, 25, 50}}});
  for (Stage& stage : plan.pipelines[0].stages) {
    stage.dp = 4;
    stage.devices = {};
    for (int d = 0; d < 4; ++d) stage.devices.push_back({&stage == &plan.pipelines[0].stages[0] ? 0 : 1, d});
  }
  const BytesPerSecond nic = plan.cluster.nodes[0].nic.bandwidth;
  for (Node& node : plan.cluster.nodes) node.nicPerDevice = true;
  plan.cluster.switches = {{"leaf", {"a100-80-sxm-0", "a100-80-sxm-1"}, nic, 4.0 * nic, {}}};
  const Seconds free = timesOf(plan).full[0].send;
  plan.cluster.switches[0].total = nic;  // four flows at once
  EXPECT_NEAR(timesOf(plan).full[0].send / free, 4, 0.2);
}

TEST(StageTime, TakesTpCollectivesFromTheNodeThatIsDrawn) {
  Plan plan =
      planOf(*parseClusterShorthand("2x2:A100-80-SXM"), *modelFromArgument("gpt3-1.3b"), {{8, 2, {"a100-80-sxm-0/0"}, {0, 50}}});
  Stage& stage = plan.pipelines[0].stages[0];
  stage.devices = {{0, 0}, {0, 1}};
  stage.tp = 2;
  const StageTime fast = timesOf(plan).full[0];
  plan.cluster.nodes[0].intra.bandwidth = 0.1 * plan.cluster.nodes[0].intra.bandwidth;
  EXPECT_GT(timesOf(plan).full[0].forward, fast.forward);
  EXPECT_GT(timesOf(plan).full[0].backward, fast.backward);
}

TEST(StageTime, SharesANodesOneNicAmongItsRanks) {
  Plan plan = planOf(*parseClusterShorthand("2x2:A100-80-SXM"), *modelFromArgument("gpt3-1.3b"),
                     {{8, 2, {"a100-80-sxm-0/0", "a100-80-sxm-1/0"}, {0, 25, 50}}});
  for (int s = 0; s < 2; ++s) {
    plan.pipelines[0].stages[static_cast<std::size_t>(s)].devices = {{s, 0}, {s, 1}};
    plan.pipelines[0].stages[static_cast<std::size_t>(s)].tp = 2;
  }
  for (Node& node : plan.cluster.nodes) node.nicPerDevice = true;
  const Seconds own = timesOf(plan).full[0].send;
  for (Node& node : plan.cluster.nodes) node.nicPerDevice = false;
  const Seconds shared = timesOf(plan).full[0].send;
  const Seconds latency = plan.cluster.nodes[0].nic.latency;
  EXPECT_NEAR((shared - latency) / (own - latency), 2.0, 1e-9);
}

TEST(StageTime, IsThatOfTheSlowestReplica) {
  Plan plan =
      planOf(*parseClusterShorthand("1x1:cpu,1x1:cpu@0.25"), *modelFromArgument("tiny-gpt"), {{8, 4, {"cpu-0/0"}, {0, 18}}});
  const Seconds whole = timesOf(plan).full[0].forward;
  Stage& stage = plan.pipelines[0].stages[0];
  stage.devices = {{0, 0}, {1, 0}};
  stage.dp = 2;
  stage.shares = {3, 1};
  const Seconds shared = timesOf(plan).full[0].forward;
  EXPECT_LT(shared, 1.2 * whole);  // 3 samples at full speed or 1 at a quarter
  stage.shares = {1, 3};
  EXPECT_GT(timesOf(plan).full[0].forward, 2 * shared);
}

TEST(ReplicaShares, KeepEverySampleOfASmallerLastMicroBatch) {
  Stage stage{.devices = {{0, 0}, {0, 1}, {0, 2}}, .tp = 1, .dp = 3, .shares = {4, 2, 1}};
  EXPECT_THAT(replicaShares(stage, 7, 7), ElementsAre(4, 2, 1));
  EXPECT_THAT(replicaShares(stage, 7, 3), ElementsAre(2, 1, 0));
  EXPECT_THAT(replicaShares(stage, 7, 1), ElementsAre(1, 0, 0));
}

}  // namespace
}  // namespace evenkeel
