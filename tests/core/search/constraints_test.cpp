// SPDX-License-Identifier: GPL-3.0-or-later
// What a person demands of plans, by the planners that offer it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/cost/evaluate.h"
#include "tests/core/search/problems.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

class Constrained : public ::testing::TestWithParam<const char*> {
 protected:
  static Problem problem() { return problemOf("1x4:A100-80-SXM,2x2:V100-32-SXM2", "gpt3-1.3b", 48); }
  static Result<Plan> planUnder(const PlannerOptions& options) { return planWith(GetParam(), problem(), {.options = options}); }
  static void expectValid(const Result<Plan>& plan) {
    ASSERT_TRUE(plan) << plan.error().text();
    const Evaluation evaluation = evaluate(*plan, AnalyticProfile(plan->model, plan->training), false);
    ASSERT_TRUE(evaluation.valid()) << evaluation.violations.front().what;
    EXPECT_LE(plan->predicted->lowerBound, plan->predicted->iteration);
  }
};
INSTANTIATE_TEST_SUITE_P(Planners, Constrained, ::testing::Values("eth", "optimal"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(Constrained, MakesExactlySoManyPipelines) {
  for (const char* count : {"1", "2", "3", "5"}) {
    const auto plan = planUnder({{"pipelines", count}});
    expectValid(plan);
    EXPECT_EQ(std::to_string(plan->pipelines.size()), count);
    EXPECT_EQ(plan->search.at("options").at("pipelines"), count);
  }
}

TEST_P(Constrained, KeepsTensorParallelismAndRecomputationAsDemanded) {
  const auto narrow = planUnder({{"max_tp", "1"}});
  expectValid(narrow);
  for (const Pipeline& pipeline : narrow->pipelines) {
    for (const Stage& stage : pipeline.stages) EXPECT_EQ(stage.tp, 1);
  }
  const auto whole = planUnder({{"recompute", "none"}});
  expectValid(whole);
  for (const Pipeline& pipeline : whole->pipelines) {
    for (const Stage& stage : pipeline.stages) EXPECT_TRUE(stage.recompute.empty());
  }
}

TEST_P(Constrained, LeavesNodesDevicesAndTypesIdle) {
  const Problem problem = Constrained::problem();
  const auto plan = planUnder({{"exclude", "v100-32-sxm2-1,a100-80-sxm-0/3"}});
  expectValid(plan);
  for (const DeviceId device : plan->usedDevices()) {
    EXPECT_NE(problem.cluster.nodes[static_cast<std::size_t>(device.node)].name, "v100-32-sxm2-1");
    EXPECT_NE(problem.cluster.nameOf(device), "a100-80-sxm-0/3");
  }
  const auto alone = planUnder({{"exclude", "V100-32-SXM2"}});
  expectValid(alone);
  for (const DeviceId device : alone->usedDevices()) EXPECT_EQ(problem.cluster.typeOf(device).name, "A100-80-SXM");
}

TEST_P(Constrained, LeavesTheReserveFreeAndReportsTheWholeCapacity) {
  const Problem problem = problemOf("1x2:V100-32-SXM2", "gpt3-1.3b", 16);
  const auto usual = planWith(GetParam(), problem), careful = planWith(GetParam(), problem, {.options = {{"reserve", "0.5"}}});
  expectValid(usual);
  expectValid(careful);
  double fullest = 0;
  for (const Pipeline& pipeline : careful->pipelines) {
    for (const Stage& stage : pipeline.stages) {
      const MemoryUse& memory = stage.predicted->memory;
      EXPECT_EQ(memory.capacity, usual->pipelines[0].stages[0].predicted->memory.capacity);
      fullest = std::max(fullest, memory.total() / memory.capacity);
    }
  }
  EXPECT_LE(fullest, 0.5 / 0.94 + 1e-6);
}

TEST_P(Constrained, NamesTheOptionThatLeavesNothing) {
  const auto expectRefused = [](const PlannerOptions& options, const char* named) {
    const auto plan = planUnder(options);
    ASSERT_FALSE(plan) << named;
    EXPECT_EQ(plan.error().code, Error::Code::InvalidInput) << plan.error().text();
    EXPECT_THAT(plan.error().where, HasSubstr(named));
  };
  expectRefused({{"pipelines", "9"}}, "pipelines=9");  // there are 8 devices
  expectRefused({{"exclude", "A100-80-SXM,V100-32-SXM2"}}, "exclude");
  expectRefused({{"exclude", "no-such-node"}}, "exclude");
  expectRefused({{"reserve", "0.01"}}, "reserve");
}

TEST_P(Constrained, SaysThatLeavingItOutWouldFit) {
  const auto plan = planWith(GetParam(), problemOf("1x4:V100-32-SXM2", "gpt3-2.7b", 16), {.options = {{"reserve", "0.85"}}});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Error::Code::Infeasible) << plan.error().text();
  EXPECT_THAT(plan.error().remedy, HasSubstr("leave out --planner-option reserve=0.85"));
}

}  // namespace
}  // namespace evenkeel
