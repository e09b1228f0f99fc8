// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/metis/fair.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/core/search/problems.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

/// Two or three kinds of nodes, deep enough that many layouts are ruled out, some memory so short that most are.
Problem randomProblem(std::uint64_t index) {
  const CounterRandom random(index, "metis layouts");
  std::uint64_t at = 0;
  const auto below = [&](std::uint64_t bound) { return random.below(at++, bound); };
  const std::vector<std::string> types = {"A100-80-SXM", "V100-32-SXM2", "RTX3090", "Ascend-910B4"};
  std::string text;
  for (std::uint64_t part = 0, parts = 2 + below(2); part < parts; ++part)
    text += fmt::format("{}1x{}:{}", part > 0 ? "," : "", 1 + below(4), types[below(4)]);
  const std::vector<std::string> models = {"gpt3-350m", "gpt3-1.3b", "gpt3-2.7b"};
  const std::vector<std::int64_t> batches = {1, 7, 12, 24, 64};
  Model model = *modelFromArgument(models[below(3)]);
  model.layers = 6 + static_cast<int>(below(10));
  Problem problem = problemOf(*parseClusterShorthand(text), std::move(model), batches[below(5)]);
  for (DeviceType& type : problem.cluster.deviceTypes) type.memory = Bytes{static_cast<std::int64_t>((0.1 + 0.9 * random.uniform(at++)) * static_cast<double>(type.memory.value))};
  return problem;
}

// It took the pace of a stage that runs the whole model alone for the slowest that there is, although memory may force more on a
// slower one: layouts that fit were left out.
TEST(MetisLayoutBound, RulesOutNothingThatWouldBeKept) {
  std::size_t plans = 0;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(sweep(25, 300)); ++i) {
    const Problem problem = randomProblem(i);
    const AnalyticProfile profile(problem.model, problem.training);
    const SearchTask task{problem, &profile, {}, {}};
    SearchObserver nobody;
    SearchSession session("metis", task, nobody, {});
    for (const std::size_t most : {std::size_t{1}, std::size_t{16}}) {
      const auto with = metis::searchFairly(session, {.variance = 0.5}, most);
      const auto without = metis::searchFairly(session, {.variance = 0.5, .mayRuleOut = false}, most);
      // Where nothing fits, both name what lacks least among the layouts that they looked at.
      const bool fits = !without.empty() && !worstLack(session.model(), without.front().pipelines);
      if (!fits) continue;
      ASSERT_EQ(with.size(), without.size()) << i;
      for (std::size_t p = 0; p < with.size(); ++p) {
        EXPECT_EQ(with[p].estimate, without[p].estimate) << "problem " << i << ", plan " << p;
        EXPECT_EQ(with[p].pipelines, without[p].pipelines) << "problem " << i << ", plan " << p;
      }
      plans += with.size();
    }
  }
  EXPECT_GT(plans, 100U);
}

}  // namespace
}  // namespace evenkeel
