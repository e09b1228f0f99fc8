// SPDX-License-Identifier: GPL-3.0-or-later
// The faults of public Metis (baseline-metis.md 7), each shown to be gone from our metis planner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/cost/evaluate.h"
#include "tests/core/search/problems.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<Plan> metisPlan(const Problem& problem, PlannerOptions options = {}) {
  return planWith("metis", problem, {.options = std::move(options)});
}

void expectValid(const Result<Plan>& plan, const std::string& what) {
  ASSERT_TRUE(plan) << what << ": " << plan.error().text();
  EXPECT_THAT(evaluate(*plan, AnalyticProfile(plan->model, plan->training), false).violations, IsEmpty()) << what;
}

// B1: with two types the first plan of the second order was priced for one stage only, and won.
TEST(MetisFaults, B1EveryStageIsPriced) {
  const auto plan = metisPlan(problemOf("1x4:A100-80-SXM,1x4:V100-32-SXM2", "gpt3-1.3b", 64));
  ASSERT_TRUE(plan) << plan.error().text();
  const double estimate = plan->search.at("estimate_ms");
  for (const Pipeline& pipeline : plan->pipelines) {
    for (const Stage& stage : pipeline.stages) {
      const double busy = milliseconds(stage.predicted->forward + stage.predicted->backward);
      EXPECT_GE(1.001 * estimate, static_cast<double>(pipeline.localBatch / pipeline.microBatch) * busy);
    }
  }
}

// B3: inter_bandwidth was never used: 0.001 GB/s gave the same output.
TEST(MetisFaults, B3ASlowNetworkChangesItsEstimate) {
  Problem problem = problemOf("2x4:A100-80-SXM", "gpt3-6.7b", 64);
  const auto fast = metisPlan(problem);
  for (Node& node : problem.cluster.nodes) node.nic.bandwidth = 1e-4 * node.nic.bandwidth;
  const auto slow = metisPlan(problem);
  ASSERT_TRUE(fast && slow);
  EXPECT_GT(slow->search.at("estimate_ms"), fast->search.at("estimate_ms"));
}

// B4: an IndexError for 6 or 12 devices. B19: uneven nodes were priced as if all were as large as the first.
TEST(MetisFaults, B4AnyNumberOfDevicesInAnyNodes) {
  for (const char* cluster : {"1x1:A100-80-SXM", "1x3:A100-80-SXM", "1x6:A100-80-SXM", "1x5:A100-80-SXM,1x7:V100-32-SXM2",
                              "1x2:A100-80-SXM,1x4:A100-80-SXM,1x2:A100-80-SXM", "1x6:A100-80-SXM,1x2:V100-32-SXM2"}) {
    expectValid(metisPlan(problemOf(cluster, "gpt3-350m", 24)), cluster);
  }
  Problem shallow = problemOf("1x13:cpu", "tiny-gpt", 13);
  shallow.model.layers = 4;  // up to 6 stages: no list of groups sums to 13
  const auto few = metisPlan(shallow);
  expectValid(few, "13 devices, 6 layers");
  EXPECT_FALSE(few->idleDevices().empty());
}

// B7: the best plan of a recorded run ended at 11 of 18 layers. B15: batch 24 lost every third sample.
TEST(MetisFaults, B7AndB15LoseNoLayerAndNoSample) {
  for (const char* model : {"gpt3-350m", "gpt3-2.7b"}) {
    for (const std::int64_t batch : {1, 7, 24, 101, 128}) {
      const auto plan = metisPlan(problemOf("1x8:A100-80-SXM,1x8:V100-32-SXM2", model, batch));
      expectValid(plan, model + std::to_string(batch));
    }
  }
}

// B18: five times one replica against the memory of the whole stage: accepted 21.6 GB on 16 GB, refused 53 GB on 80 GB.
TEST(MetisFaults, B18MemoryIsThatOfEachDevice) {
  const auto fits = metisPlan(problemOf("1x1:A100-80-SXM", "gpt3-2.7b", 8));
  expectValid(fits, "one large card");
  const auto tooLarge = metisPlan(problemOf("1x2:V100-16-SXM2", "gpt3-6.7b", 8));
  ASSERT_FALSE(tooLarge);
  EXPECT_EQ(tooLarge.error().code, Error::Code::Infeasible);
  EXPECT_THAT(tooLarge.error().what, HasSubstr("lacks"));
}

// The paper's line "unlimited memory": the balance that the search finds when no stage is ever too full.
TEST(Metis, PlansForDevicesOfBoundlessMemoryWhenItIsToIgnoreMemory) {
  const Problem problem = problemOf("1x2:V100-16-SXM2", "gpt3-6.7b", 8);
  ASSERT_FALSE(metisPlan(problem));
  const auto plan = metisPlan(problem, {{"memory", "ignore"}});
  expectValid(plan, "boundless");
  EXPECT_GT(plan->cluster.deviceTypes.front().memory, 1000 * problem.cluster.deviceTypes.front().memory);
}

TEST(Metis, ReturnsItsBestPlanSoFarWhenItsTimeEnds) {
  const Problem problem = problemOf("1x8:A100-80-SXM,1x8:V100-32-SXM2", "gpt3-2.7b", 64);
  struct StopBeforePricing final : SearchObserver {  // what was found until then is not priced yet
    std::stop_source source;
    void onPhase(std::string_view phase) override {
      if (phase == "pricing") source.request_stop();
    }
  } observer;
  const auto plan = planWith("metis", problem, {.observer = &observer, .stop = observer.source.get_token()});
  expectValid(plan, "stopped");
  EXPECT_EQ(plan->search.at("stopped"), "stop request");
}

TEST(Metis, RefusesExactModeWithoutARecordedCase) {
  const auto plan = metisPlan(problemOf("1x2:cpu", "tiny-gpt", 4), {{"exact", "true"}});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().remedy, HasSubstr("--metis-case"));
}

}  // namespace
}  // namespace evenkeel
