// SPDX-License-Identifier: GPL-3.0-or-later
// Public Metis asked about problems of ours, its faults kept: what the paper compared with.
#include "core/search/metis/published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/cost/evaluate.h"
#include "tests/core/search/problems.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const PlannerOptions kKeep = {{"faults", "keep"}};

TEST(MetisAsPublished, IsGivenWholeLayersOfEveryTypeWithoutZero) {
  const Problem problem = problemOf("1x4:A100-80-SXM,1x4:V100-32-SXM2", "gpt3-1.3b", 64);
  const AnalyticProfile profile(problem.model, problem.training);
  const CostModel model(problem.cluster, problem.model, problem.training, profile);
  const auto published = metis::Published::of(model, limitsOf(problem), {.mostSamples = 5});
  ASSERT_TRUE(published) << published.error().text();
  const metis::OriginalCase& given = published->given();
  EXPECT_EQ(given.deviceCount(), 8);
  EXPECT_EQ(given.layers, problem.model.layers + 2);
  EXPECT_EQ(given.mostBatch, 4);
  EXPECT_EQ(given.typeOrders.size(), 2U);
  EXPECT_EQ(given.profiles.size(), 2U * 3 * 3);  // types, tp 1 2 4, samples 1 2 4
  const metis::OriginalCase::Profile& one = given.profiles.at({given.firstType, 1, 1});
  EXPECT_GT(one.forwardBackwardMs, std::accumulate(one.layerMs.begin(), one.layerMs.end(), 0.0));  // B11: not one plan otherwise
  double memory = std::accumulate(one.layerMemoryMb.begin(), one.layerMemoryMb.end(), 0.0) * 1024 * 1024;
  EXPECT_GT(memory, 18.0 * static_cast<double>(storedParameters(problem.model, 0, problem.model.unitCount())));
}

TEST(MetisAsPublished, ReturnsTheFirstOfItsPlansThatCanBeRun) {
  const Problem problem = problemOf("1x4:A100-80-SXM,1x4:V100-32-SXM2", "gpt3-1.3b", 64);
  const auto plan = planWith("metis", problem, {.options = kKeep});
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_THAT(evaluate(*plan, AnalyticProfile(plan->model, plan->training), false).violations, IsEmpty());
  EXPECT_GE(plan->search.at("rank").get<int>(), 1);
  EXPECT_GT(plan->search.at("estimate_ms").get<double>(), 0);
}

// B3 is kept: a network of a ten-thousandth changes neither its plan nor its estimate.
TEST(MetisAsPublished, KnowsNothingOfTheNetworkBetweenNodes) {
  Problem problem = problemOf("2x4:A100-80-SXM", "gpt3-2.7b", 64);
  const auto fast = planWith("metis", problem, {.options = kKeep});
  for (Node& node : problem.cluster.nodes) node.nic.bandwidth = 1e-4 * node.nic.bandwidth;
  const auto slow = planWith("metis", problem, {.options = kKeep});
  ASSERT_TRUE(fast && slow);
  EXPECT_EQ(fast->pipelines, slow->pipelines);
  EXPECT_EQ(fast->search.at("estimate_ms"), slow->search.at("estimate_ms"));
}

// B4 is kept, but said.
TEST(MetisAsPublished, RefusesWhatThePublicOneEndsIn) {
  const auto six = planWith("metis", problemOf("1x6:A100-80-SXM", "gpt3-350m", 24), {.options = kKeep});
  ASSERT_FALSE(six);
  EXPECT_THAT(six.error().text(), HasSubstr("power of two"));
  Problem mixed = problemOf("1x4:A100-80-SXM,1x4:V100-32-SXM2", "gpt3-350m", 24);
  mixed.cluster.nodes.front().devices.front().type = 1;
  const auto unlike = planWith("metis", mixed, {.options = kKeep});
  ASSERT_FALSE(unlike);
  EXPECT_THAT(unlike.error().text(), HasSubstr("unlike devices"));
  EXPECT_FALSE(planWith("metis", problemOf("1x2:A100-80-SXM", "gpt3-350m", 24), {.options = {{"faults", "some"}}}));
}

}  // namespace
}  // namespace evenkeel
