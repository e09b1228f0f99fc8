// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/run_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/cost/evaluate.h"
#include "tests/core/search/problems.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

/// Two nodes of four A100 and one of four V100, at these prices.
Problem priced(double a100, double v100) {
  Problem problem = problemOf("2x4:A100-80-SXM,1x4:V100-32-SXM2", "gpt3-1.3b", 64);
  for (Node& node : problem.cluster.nodes) node.pricePerHour = node.devices.front().type == 0 ? a100 : v100;
  return problem;
}

Result<Plan> planFor(const Goal& goal, const Problem& problem, const std::string& planner = "eth") {
  const AnalyticProfile profile(problem.model, problem.training);
  SearchObserver nobody;
  return planFor(goal, **plannerNamed(planner), {problem, &profile, {}, {}}, nobody, {});
}

TEST(RunCost, CountsHoursDevicesAndWholeNodes) {
  // A device of the A100s and one of the V100s: their whole nodes are paid.
  const PlannerOptions two = {{"exclude",
                               "a100-80-sxm-1,a100-80-sxm-0/1,a100-80-sxm-0/2,a100-80-sxm-0/3,v100-32-sxm2-0/1,"
                               "v100-32-sxm2-0/2,v100-32-sxm2-0/3"},
                              {"pipelines", "2"}};
  const auto plan = planWith("eth", priced(8, 2), {.options = two});
  ASSERT_TRUE(plan) << plan.error().text();
  const RunCost cost = runCost(*plan, 1000);
  const double hours = 1000 * plan->predicted->iteration.value / 3600;
  EXPECT_DOUBLE_EQ(cost.duration.value, 3600 * hours);
  EXPECT_DOUBLE_EQ(cost.deviceHours, 2 * hours);
  ASSERT_TRUE(cost.price);
  EXPECT_DOUBLE_EQ(*cost.price, (8 + 2) * hours);
  EXPECT_EQ(toJson(cost)["steps"], 1000);
  EXPECT_EQ(stepsFor(64 * 2048 * 10 + 1, plan->training), 11);
}

TEST(RunCost, KnowsNoPriceWhereANodeHasNone) {
  const auto plan = planWith("eth", priced(8, 0), {.options = {{"exclude", "A100-80-SXM"}}});
  ASSERT_TRUE(plan);
  EXPECT_FALSE(runCost(*plan, 10).price);
  EXPECT_EQ(runCost(*plan, 10).unpriced, "v100-32-sxm2-0");
  EXPECT_FALSE(toJson(runCost(*plan, 10)).contains("price"));
}

TEST(PlanFor, CostLeavesNodesIdleThatAreNotWorthTheirPrice) {
  for (const char* planner : {"eth", "optimal"}) {
    const auto dear = planFor({.objective = Objective::Cost}, priced(8, 50), planner);
    ASSERT_TRUE(dear) << dear.error().text();
    for (const DeviceId device : dear->usedDevices()) EXPECT_EQ(device.node < 2, true) << planner << ": the V100s are too dear";
    const auto cheap = planFor({.objective = Objective::Cost}, priced(8, 0.01), planner);
    ASSERT_TRUE(cheap);
    const auto usesV100 = std::ranges::any_of(cheap->usedDevices(), [](DeviceId device) { return device.node == 2; });
    EXPECT_TRUE(usesV100) << planner;
    // Never dearer than the fastest plan.
    const auto fastest = planFor({}, priced(8, 50), planner);
    ASSERT_TRUE(fastest);
    EXPECT_LE(*runCost(*dear, 1000).price, *runCost(*fastest, 1000).price);
    EXPECT_TRUE(evaluate(*dear, AnalyticProfile(dear->model, dear->training), false).valid());
  }
}

TEST(PlanFor, DeadlineTakesTheCheapestThatEndsInTime) {
  const Problem problem = priced(8, 50);
  const auto fastest = planFor({}, problem);
  ASSERT_TRUE(fastest);
  const auto cheapest = planFor({.objective = Objective::Cost}, problem);
  ASSERT_TRUE(cheapest);
  const auto hoursOf = [](const Plan& plan) { return runCost(plan, 1000).duration; };
  const auto tight = planFor({Objective::Deadline, 1000, 1.0001 * hoursOf(*fastest)}, problem);
  const auto loose = planFor({Objective::Deadline, 1000, 10 * hoursOf(*cheapest)}, problem);
  ASSERT_TRUE(tight && loose);
  EXPECT_LE(hoursOf(*tight), 1.0001 * hoursOf(*fastest));
  EXPECT_LE(*runCost(*loose, 1000).price, *runCost(*tight, 1000).price);
  const auto missed = planFor({Objective::Deadline, 1000, 0.5 * hoursOf(*fastest)}, problem);
  ASSERT_FALSE(missed);
  EXPECT_EQ(missed.error().code, Error::Code::Infeasible);
  EXPECT_THAT(missed.error().what, HasSubstr("fastest plan found takes"));
}

TEST(PlanFor, RefusesWhatCannotBeWeighed) {
  const auto unpriced = planFor({.objective = Objective::Cost}, priced(8, 0));
  ASSERT_FALSE(unpriced);
  EXPECT_THAT(unpriced.error().what, HasSubstr("v100-32-sxm2-0 has no price"));
  const auto endless = planFor({.objective = Objective::Deadline}, priced(8, 2));
  ASSERT_FALSE(endless);
  EXPECT_THAT(endless.error().remedy, HasSubstr("--deadline-hours"));
  EXPECT_FALSE(planFor({.objective = Objective::Cost}, priced(8, 2), "uniform"));
}

}  // namespace
}  // namespace evenkeel
