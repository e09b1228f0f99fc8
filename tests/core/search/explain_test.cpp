// SPDX-License-Identifier: GPL-3.0-or-later
// Sentences about plans follow what is drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/cost/evaluate.h"
#include "core/search/explain/reasons.h"
#include "tests/core/search/problems.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<Reason> reasonsOf(const Plan& plan) { return reasonsFor(plan, AnalyticProfile(plan.model, plan.training)); }

const Reason* firstAbout(const std::vector<Reason>& reasons, Reason::About about, const std::string& part = "") {
  for (const Reason& reason : reasons) {
    if (reason.about == about && reason.sentence.find(part) != std::string::npos) return &reason;
  }
  return nullptr;
}

/// Four V100 in a node and one more behind a slow NIC, which stays idle.
Plan planWithOneFar(double farGbs) {
  Problem problem = problemOf("1x4:V100-32-SXM2,1x1:V100-32-SXM2", "gpt3-350m", 16);
  for (Node& node : problem.cluster.nodes) node.nic.bandwidth = fromGbs(farGbs);
  auto plan = planWith("optimal", problem, {.options = {{"exclude", "v100-32-sxm2-1"}}});
  EXPECT_TRUE(plan);
  return *std::move(plan);
}

TEST(Reasons, SpeakOfPlansThatWereEvaluated) {
  int evaluated = 0;
  for (const char* model : {"gpt3-6.7b", "gpt3-2.7b", "gpt3-1.3b"}) {
    const auto plan = planWith("optimal", problemOf("1x4:Ascend-910B2,1x4:Ascend-910B4", model, 24));
    ASSERT_TRUE(plan);
    const auto reasons = reasonsOf(*plan);
    ASSERT_NE(firstAbout(reasons, Reason::About::Bottleneck, "is the slowest"), nullptr);
    EXPECT_NE(firstAbout(reasons, Reason::About::MicroBatch), nullptr);
    for (const Reason& reason : reasons) {
      if (!reason.iteration || reason.about == Reason::About::Sync) continue;
      Plan changed = *plan;
      changed.pipelines = reason.changed;
      const Evaluation evaluation = evaluate(changed, AnalyticProfile(plan->model, plan->training), false);
      ASSERT_TRUE(evaluation.valid()) << reason.sentence;
      EXPECT_EQ(evaluation.plan.predicted->iteration, *reason.iteration) << reason.sentence;
      ++evaluated;
    }
  }
  EXPECT_GT(evaluated, 0);
}

TEST(Reasons, SayWhatAnIdleDeviceWouldCostAndFollowItsLink) {
  const auto slow = reasonsOf(planWithOneFar(0.2)), fast = reasonsOf(planWithOneFar(2));
  const Reason* const far = firstAbout(slow, Reason::About::Idle, "v100-32-sxm2-1/0 is idle");
  const Reason* const near = firstAbout(fast, Reason::About::Idle, "v100-32-sxm2-1/0 is idle");
  ASSERT_TRUE(far && near);
  ASSERT_TRUE(far->iteration && near->iteration) << far->sentence;
  EXPECT_GT(*far->iteration, *near->iteration);
  EXPECT_NE(far->sentence, near->sentence);
}

TEST(Reasons, SayWhatRecomputationBuysAndFollowTheMemory) {
  const auto plan = planWith("optimal", problemOf("1x4:Ascend-910B4", "gpt3-2.7b", 64));
  ASSERT_TRUE(plan);
  const auto before = reasonsOf(*plan);
  const Reason* const tight = firstAbout(before, Reason::About::Recomputation);
  ASSERT_NE(tight, nullptr) << "the plan recomputes";
  EXPECT_THAT(tight->sentence, HasSubstr("lacks"));
  EXPECT_FALSE(tight->iteration);
  Plan roomy = *plan;
  for (DeviceType& type : roomy.cluster.deviceTypes) type.memory = Bytes{4 * type.memory.value};
  const auto reasons = reasonsOf(roomy);
  const Reason* const free = firstAbout(reasons, Reason::About::Recomputation);
  ASSERT_NE(free, nullptr);
  ASSERT_TRUE(free->iteration) << free->sentence;
  EXPECT_LT(*free->iteration, plan->predicted->iteration);
}

TEST(Reasons, AreNoneForAPlanThatIsNotValid) {
  Plan plan = planWithOneFar(2);
  ++plan.pipelines.front().localBatch;
  EXPECT_THAT(reasonsOf(plan), SizeIs(0));
}

TEST(WhatFits, CountsWhatDevicesHoldAndFollowsTheirMemory) {
  Problem problem = problemOf("1x4:V100-32-SXM2", "gpt3-13b", 16);
  const AnalyticProfile profile(problem.model, problem.training);
  const auto tight = whatFits(problem, profile);
  ASSERT_THAT(tight, SizeIs(2));
  EXPECT_THAT(tight.front(), HasSubstr("4 V100-32-SXM2"));
  for (DeviceType& type : problem.cluster.deviceTypes) type.memory = Bytes{4 * type.memory.value};
  EXPECT_NE(whatFits(problem, profile), tight);
}

}  // namespace
}  // namespace evenkeel
