// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/warm_start.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/cost/evaluate.h"
#include "tests/core/search/problems.h"

namespace evenkeel {
namespace {

constexpr const char* kCluster = "2x2:Ascend-910B2,2x2:Ascend-910B4";

/// A model of a few layers: these searches are many.
Problem shortProblem(const char* name) {
  Model model = *modelFromArgument(name);
  model.layers = 6;
  return problemOf(*parseClusterShorthand(kCluster), std::move(model), 64);
}

std::int64_t samplesOf(const std::vector<Pipeline>& pipelines) {
  std::int64_t sum = 0;
  for (const Pipeline& pipeline : pipelines) sum += pipeline.localBatch;
  return sum;
}

/// Plans `problem` from `last` and tells what the first incumbent was.
struct FirstFinder final : SearchObserver {
  std::string finder;
  void onIncumbent(const Incumbent& incumbent) override {
    if (finder.empty()) finder = incumbent.finder;
  }
};
Result<Plan> planFrom(const Plan& last, const Problem& problem, const char* planner, FirstFinder& observer) {
  const AnalyticProfile profile(problem.model, problem.training);
  return (*plannerNamed(planner))->plan({problem, &profile, {}, {}, &last}, observer, {});
}

TEST(CarriedOver, KeepsWhatItsDevicesAllow) {
  Problem problem = shortProblem("gpt3-1.3b");
  const auto last = planWith("optimal", problem);
  ASSERT_TRUE(last) << last.error().text();
  EXPECT_EQ(samplesOf(carriedOver(*last, problem)), 64);
  EXPECT_EQ(carriedOver(*last, problem).size(), last->pipelines.size());
  problem.training.globalBatch = 101;
  EXPECT_EQ(samplesOf(carriedOver(*last, problem)), 101);
  problem.training.globalBatch = 1;
  EXPECT_EQ(samplesOf(carriedOver(*last, problem)), 1);
  problem.training.globalBatch = 64;
  std::ranges::reverse(problem.cluster.nodes);  // the same nodes by name
  EXPECT_EQ(carriedOver(*last, problem).size(), last->pipelines.size());
  problem.cluster.nodes.erase(problem.cluster.nodes.begin());
  const std::vector<Pipeline> left = carriedOver(*last, problem);
  EXPECT_LT(left.size(), last->pipelines.size());
  EXPECT_EQ(samplesOf(left), left.empty() ? 0 : 64);
  problem.model.layers += 1;
  EXPECT_TRUE(carriedOver(*last, problem).empty());
}

class WarmStart : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Planners, WarmStart, ::testing::Values("eth", "optimal"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(WarmStart, BeginsWithTheLastPlanAndIsNeverSlowerThanIt) {
  Problem problem = shortProblem("gpt3-1.3b");
  const auto last = planWith(GetParam(), problem);
  ASSERT_TRUE(last);
  FirstFinder observer;
  const auto again = planFrom(*last, problem, GetParam(), observer);
  ASSERT_TRUE(again);
  EXPECT_EQ(observer.finder, "what is left of the last plan");
  EXPECT_LE(again->predicted->iteration, last->predicted->iteration);
}

TEST_P(WarmStart, PlansWhatIsLeftWhenANodeIsGone) {
  Problem problem = shortProblem("gpt3-2.7b");
  const auto last = planWith(GetParam(), problem);
  ASSERT_TRUE(last);
  for (std::size_t gone = 0; gone < problem.cluster.nodes.size(); ++gone) {
    Problem less = problem;
    less.cluster.nodes.erase(less.cluster.nodes.begin() + static_cast<std::ptrdiff_t>(gone));
    FirstFinder observer;
    const auto warm = planFrom(*last, less, GetParam(), observer), cold = planWith(GetParam(), less);
    ASSERT_TRUE(warm && cold);
    EXPECT_TRUE(evaluate(*warm, AnalyticProfile(warm->model, warm->training), false).valid());
    EXPECT_LE(warm->predicted->iteration, 1.01 * cold->predicted->iteration) << "without node " << gone;
  }
}

// A file by hand may say anything in `search`.
TEST(WarmStartOfOptimal, PassesOverAPlanOfAnotherModelAndPricesThatAreNone) {
  const Problem problem = shortProblem("gpt3-1.3b");
  auto last = planWith("optimal", problem);
  ASSERT_TRUE(last);
  const Seconds usual = last->predicted->iteration;
  last->search["prices"] = {{{"type", 3}, {"level", "x"}, {"price", -1}}, "no", 7};
  FirstFinder observer;
  const auto odd = planFrom(*last, problem, "optimal", observer);
  ASSERT_TRUE(odd) << odd.error().text();
  EXPECT_LE(odd->predicted->iteration, usual);
  const auto other = planFrom(*last, problemOf(kCluster, "gpt3-350m", 64), "optimal", observer);
  EXPECT_TRUE(other) << other.error().text();
}

// A plan that could not be used was ignored without a word.
TEST(CheckStart, RefusesPlannersThatStartFromNothingAndPlansOfOtherModels) {
  const Problem problem = problemOf("1x2:cpu", "tiny-gpt", 8);
  const auto plan = planWith("uniform", problem);
  ASSERT_TRUE(plan);
  for (const char* planner : {"optimal", "eth"}) EXPECT_TRUE(checkStart(planner, *plan, problem)) << planner;
  for (const char* planner : {"metis", "hexiscale", "uniform", "best-type"}) {
    const auto refused = checkStart(planner, *plan, problem);
    ASSERT_FALSE(refused) << planner;
    EXPECT_EQ(refused.error().code, Error::Code::InvalidInput);
    EXPECT_NE(refused.error().what.find(planner), std::string::npos) << refused.error().text();
  }
  const auto other = checkStart("optimal", *plan, problemOf("1x2:A100-80-SXM", "gpt3-350m", 8));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().what.find("gpt3-350m"), std::string::npos) << other.error().text();
  EXPECT_NE(other.error().what.find("tiny-gpt"), std::string::npos) << other.error().text();
}

// Nodes of other names: nothing was carried over, and nobody said so.
TEST(NotCarriedOver, NamesADeviceThatTheClusterLacksAndWhatIsDoneInstead) {
  Problem problem = problemOf("1x2:cpu,1x2:cpu@0.5", "tiny-gpt", 8);
  auto plan = planWith("uniform", problem);
  ASSERT_TRUE(plan);
  plan->pipelines.resize(1);
  plan->pipelines.push_back(plan->pipelines.front());
  plan->pipelines.front().stages = {{.devices = {{0, 0}}, .units = {0, problem.model.unitCount()}}};
  plan->pipelines.back().stages = {{.devices = {{1, 1}}, .units = {0, problem.model.unitCount()}}};
  EXPECT_EQ(notCarriedOver("optimal", *plan, problem), "");
  problem.cluster.nodes.back().name = "renamed";
  EXPECT_EQ(notCarriedOver("eth", *plan, problem),
            "1 of the 2 pipelines of the last plan is on devices of this cluster (it has no cpu@0.5 " + plan->cluster.nameOf({1, 1}) +
                "): the search starts from these");
  problem.cluster.nodes.front().name = "renamed too";
  EXPECT_EQ(notCarriedOver("eth", *plan, problem),
            "none of the 2 pipelines of the last plan is on devices of this cluster (it has no cpu " + plan->cluster.nameOf({0, 0}) +
                "): the search starts from nothing");
  EXPECT_NE(notCarriedOver("optimal", *plan, problem).find("prices of devices are used"), std::string::npos);
}

}  // namespace
}  // namespace evenkeel
