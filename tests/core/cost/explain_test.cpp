// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/explain.h"

#include <gmock/gmock.h>

#include "core/profile/analytic_profile.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using testing::HasSubstr;

struct Case {
  Plan plan = planOf(*parseClusterShorthand("2x2:A100-80-SXM"), *modelFromArgument("gpt3-350m"),
                     {{24, 2, {"a100-80-sxm-0/0", "a100-80-sxm-0/1"}, {0, 24, 50}},
                      {16, 2, {"a100-80-sxm-1/0", "a100-80-sxm-1/1"}, {0, 25, 50}}});
  AnalyticProfile profile{plan.model, plan.training};
  Evaluation evaluation = evaluate(plan, profile, false);
  std::vector<ExplainedTerm> terms = explain(CostModel(plan.cluster, plan.model, plan.training, profile), evaluation);
};

/// Sum of the terms one level below the first whose text has `what`.
double sumBelow(const std::vector<ExplainedTerm>& terms, const std::string& what, const std::string& except = "?") {
  double sum = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].what.find(what) == std::string::npos) continue;
    for (std::size_t j = i + 1; j < terms.size() && terms[j].level > terms[i].level; ++j) {
      if (terms[j].level == terms[i].level + 1 && terms[j].what.find(except) == std::string::npos) sum += terms[j].time.value;
    }
    return sum;
  }
  return -1;
}

TEST(Explain, AddsUpToTheIterationToTheStageAndToTheSync) {
  const Case c;
  const PlanPrediction& predicted = *c.evaluation.plan.predicted;
  EXPECT_NEAR(sumBelow(c.terms, "iteration"), predicted.iteration.value, 1e-9);
  const StagePrediction& pace = *c.evaluation.plan.pipelines[0].stages[1].predicted;
  EXPECT_NEAR(sumBelow(c.terms, "stage 1, which sets the pace", "send"), (pace.forward + pace.backward).value, 1e-9);
  EXPECT_GT(predicted.sync.value, 0);
  EXPECT_NEAR(sumBelow(c.terms, "gradient sync"), predicted.sync.value, 1e-9);
}

TEST(Explain, NamesOpsLinksAndFormulas) {
  const Case c;
  std::string text;
  for (const ExplainedTerm& term : c.terms) text += term.what + ": " + term.because + "\n";
  EXPECT_THAT(text, HasSubstr("Qkv: "));
  EXPECT_THAT(text, HasSubstr("GFLOP forward"));
  EXPECT_THAT(text, HasSubstr("analytic"));
  EXPECT_THAT(text, HasSubstr("a100-80-sxm-0/0 -> a100-80-sxm-0/1: 10 us + 300 GB/s"));
  EXPECT_THAT(text, HasSubstr("block-wise, ZeRO-1"));
}

TEST(Explain, ShowsTheErrorThatPredictionsOfItsKindHadInThePlan) {
  const Case c;
  EXPECT_NEAR(c.evaluation.plan.predicted->error, 0.22, 1e-9);  // analytic, nothing measured of an A100
  const auto again = parsePlan(toJson(c.evaluation.plan), "plan.json");
  ASSERT_TRUE(again.ok());
  EXPECT_NEAR(again->predicted->error, 0.22, 1e-9);
}

}  // namespace
}  // namespace evenkeel
