// SPDX-License-Identifier: GPL-3.0-or-later
// What each optimisation of eth does, and that switching it off changes the effort rather than the plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "core/search/eth/skipping.h"
#include "core/search/eth/variance.h"
#include "tests/core/search/problems.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;
using ::testing::Le;

/// Devices one by one, every way to match them.
bool dominatesByTrial(const Composition& large, const Composition& small, const std::vector<Capacity>& capacities) {
  std::vector<std::size_t> wanted, offered;
  for (std::size_t t = 0; t < capacities.size(); ++t) {
    wanted.insert(wanted.end(), static_cast<std::size_t>(small[t]), t);
    offered.insert(offered.end(), static_cast<std::size_t>(large[t]), t);
  }
  std::vector<char> taken(offered.size(), 0);
  const std::function<bool(std::size_t)> match = [&](std::size_t i) {
    if (i == wanted.size()) return true;
    for (std::size_t o = 0; o < offered.size(); ++o) {
      if (taken[o] || !capacities[offered[o]].covers(capacities[wanted[i]])) continue;
      taken[o] = 1;
      if (match(i + 1)) return true;
      taken[o] = 0;
    }
    return false;
  };
  return match(0);
}

TEST(Dominance, IsAMatchingOfEachDeviceToABetterOne) {
  const CounterRandom random(11, "dominance");
  int yes = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    std::vector<Capacity> capacities;
    Composition large, small;
    for (std::uint64_t t = 0; t < 3; ++t) {
      const auto figure = [&](std::uint64_t n) { return 1.0 + static_cast<double>(random.below(100 * i + 10 * t + n, 3)); };
      capacities.push_back({figure(0), figure(1), 1, 1, figure(2)});
      large.push_back(static_cast<int>(random.below(100 * i + 10 * t + 3, 4)));
      small.push_back(static_cast<int>(random.below(100 * i + 10 * t + 4, 3)));
    }
    const bool expected = dominatesByTrial(large, small, capacities);
    EXPECT_EQ(dominates(large, small, capacities), expected) << "case " << i;
    yes += expected ? 1 : 0;
  }
  EXPECT_GT(yes, 40);
  EXPECT_LT(yes, 360);
}

TEST(ThroughputBounds, NeverFallBelowWhatIsKnownOfTheGroupItself) {
  ThroughputBounds bounds({{2, 2, 2, 2, 2}, {1, 1, 1, 1, 1}});
  EXPECT_GT(bounds.of({1, 1}).byDominance, 1e300) << "nothing is known yet";
  bounds.learn({2, 0}, 8.0);
  bounds.learn({0, 2}, 3.0);
  EXPECT_DOUBLE_EQ(bounds.of({2, 0}).byDominance, 8.0);
  EXPECT_DOUBLE_EQ(bounds.of({1, 1}).byDominance, 8.0) << "each of its devices has a better one in the first group";
  EXPECT_DOUBLE_EQ(bounds.of({0, 1}).byDominance, 3.0);
  EXPECT_DOUBLE_EQ(bounds.of({0, 4}).byScaling, 8.0) << "as much compute as the first group";
}

TEST(Variance, CountsRatiosAndPutsEvenGroupingsFirst) {
  const std::vector<double> flops = {2.0, 1.0};
  const Spread even = spreadOf({{1, 1}, {1, 1}}, flops);
  EXPECT_DOUBLE_EQ(even.inter, 0.0);
  EXPECT_NEAR(even.intra, 1.0 / 9.0, 1e-12);  // devices of 2 and 1: variance 0.25 over 1.5 squared
  const Spread apart = spreadOf({{2, 0}, {0, 2}}, flops);
  EXPECT_NEAR(apart.inter, 1.0 / 9.0, 1e-12);
  EXPECT_DOUBLE_EQ(apart.intra, 0.0);
  EXPECT_NEAR(spreadOf({{2, 0}, {0, 2}}, {20.0, 10.0}).inter, apart.inter, 1e-12);
  std::vector<Grouping> order = {{{2, 2}}, {{2, 0}, {0, 2}}, {{1, 1}, {1, 1}}};
  orderByVariance(order, flops, 1000);  // a deep model: uneven devices inside a pipeline hardly matter
  EXPECT_THAT(order, ElementsAre(Grouping{{2, 2}}, Grouping{{1, 1}, {1, 1}}, Grouping{{2, 0}, {0, 2}}));
}

Result<Plan> ethPlan(const Problem& problem, PlannerOptions options) {
  return planWith("eth", problem, {.options = std::move(options)});
}

TEST(EthOptions, ACacheChangesTheEffortAndNotThePlan) {
  const Problem problem = problemOf("1x3:A100-80-SXM,1x4:V100-32-SXM2", "gpt3-6.7b", 96);
  const auto on = ethPlan(problem, {{"skip", "off"}}), off = ethPlan(problem, {{"skip", "off"}, {"cache", "off"}});
  ASSERT_TRUE(on && off);
  EXPECT_EQ(on->pipelines, off->pipelines);
  EXPECT_GT(on->search.at("cached"), off->search.at("cached"));
}

std::int64_t skipped(const Plan& plan) {
  std::int64_t count = 0;
  for (const auto& [reason, number] : plan.search.at("pruned").items()) {
    if (reason.starts_with("skipped")) count += number.get<std::int64_t>();
  }
  return count;
}

TEST(EthOptions, SkippingIsCountedAndCostsAtMostOnePercent) {
  for (const char* model : {"gpt3-1.3b", "gpt3-6.7b", "gpt3-13b"}) {
    const Problem problem = problemOf("1x4:Ascend-910B2,1x4:Ascend-910B4", model, 96);
    const auto on = ethPlan(problem, {}), off = ethPlan(problem, {{"skip", "off"}});
    ASSERT_TRUE(on && off) << model;
    EXPECT_LE(on->predicted->iteration, 1.01 * off->predicted->iteration) << model;
    EXPECT_GT(skipped(*on), 0) << model;
    EXPECT_EQ(skipped(*off), 0) << model;
    // A smaller alpha trusts the approximate bound more.
    const auto bold = ethPlan(problem, {{"alpha", "0.5"}});
    ASSERT_TRUE(bold) << model;
    EXPECT_GE(skipped(*bold), skipped(*on)) << model;
  }
}

/// Of the blocks; nothing is to be recomputed in embedding and head.
std::set<std::vector<Op>> opSetsOf(const Plan& plan) {
  std::set<std::vector<Op>> sets;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      for (int unit = std::max(1, stage.units.first); unit < std::min(stage.units.last, plan.model.unitCount() - 1); ++unit) {
        const auto found = std::ranges::find_if(stage.recompute,
                                                [&](const Recompute& r) { return r.units.first <= unit && unit < r.units.last; });
        sets.insert(found == stage.recompute.end() ? std::vector<Op>{} : found->ops);
      }
    }
  }
  return sets;
}

// ETH's Fig. 12: recomputation per stage against one choice for all.
TEST(EthOptions, RecomputationIsPerStageOrOneSetForAllOrNone) {
  const Problem tight = problemOf("1x4:A100-40-SXM,1x4:V100-32-SXM2", "gpt3-6.7b", 96);
  const auto stage = ethPlan(tight, {}), global = ethPlan(tight, {{"recompute", "global"}});
  ASSERT_TRUE(stage && global);
  EXPECT_LT(stage->predicted->iteration, global->predicted->iteration);
  EXPECT_GT(opSetsOf(*stage).size(), 1U);
  EXPECT_THAT(opSetsOf(*global).size(), Le(1U));
  const auto none = ethPlan(problemOf("1x8:A100-80-SXM", "gpt3-1.3b", 32), {{"recompute", "none"}});
  ASSERT_TRUE(none) << none.error().text();
  EXPECT_EQ(opSetsOf(*none), std::set<std::vector<Op>>{{}});
}

TEST(EthOptions, EveryGroupingIsAPointForThePaperPicture) {
  struct Points final : SearchObserver {
    std::vector<SearchPoint> points;
    void onPoint(const SearchPoint& point) override { points.push_back(point); }
  } observer;
  const Problem problem = problemOf("1x2:Ascend-910B2,1x2:Ascend-910B4", "gpt3-1.3b", 24);
  ASSERT_TRUE(planWith("eth", problem, {.options = {{"skip", "off"}, {"dp", "off"}}, .observer = &observer}));
  ASSERT_GT(observer.points.size(), 20U);
  EXPECT_TRUE(
      std::ranges::any_of(observer.points, [](const SearchPoint& p) { return p.interVariance > 0 && p.samplesPerSecond > 0; }));
  EXPECT_TRUE(
      std::ranges::any_of(observer.points, [](const SearchPoint& p) { return p.intraVariance > 0 && p.samplesPerSecond > 0; }));
}

}  // namespace
}  // namespace evenkeel
