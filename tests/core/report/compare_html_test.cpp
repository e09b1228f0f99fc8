// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/compare_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "core/report/pipeline_groups.h"
#include "tests/core/search/problems.h"

namespace evenkeel::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Compared comparedWith(const std::string& planner, const Problem& problem) {
  const Planner& known = **plannerNamed(planner);
  const AnalyticProfile profile(problem.model, problem.training);
  Compared one{known.name, known.summary, known.deviations, {}, {}, Seconds{0.5}};
  const auto plan = planWith(planner, problem);
  if (plan) one.evaluation = evaluate(*plan, profile);
  else one.error = plan.error();
  return one;
}

CompareReport reportOf(const Problem& problem, const std::vector<std::string>& planners) {
  CompareReport report{problem, "analytic", shellText({"evenkeel-cli", "compare", "--cluster", "it's a file"}), {}};
  for (const std::string& planner : planners) report.planners.push_back(comparedWith(planner, problem));
  return report;
}

/// Every element is closed, in order: browsers forgive, readers of XML do not.
void expectBalanced(const std::string& html) {
  static const std::regex tag("<(/?)([a-z0-9]+)([^>]*)>");
  std::vector<std::string> open;
  for (auto at = std::sregex_iterator(html.begin(), html.end(), tag); at != std::sregex_iterator(); ++at) {
    const std::string name = (*at)[2], rest = (*at)[3];
    if (name == "meta" || rest.ends_with("/")) continue;
    if ((*at)[1].length() == 0) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << name;
    ASSERT_EQ(open.back(), name);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST(CompareHtml, NeedsNoOtherFileAndNoScript) {
  const std::string html =
      compareHtml(reportOf(problemOf("1x2:cpu@0.5,1x2:cpu@0.25", "tiny-gpt", 13), {"eth", "hexiscale", "metis"}));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("src=")));
  EXPECT_THAT(html, Not(HasSubstr("url(")));
  EXPECT_THAT(html, Not(HasSubstr("href=")));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
  for (const char* part :
       {"Key figures", "timeline of eth", "memory of metis", "stage 0", "own estimate", "it&#39;\\&#39;&#39;s a file"})
    EXPECT_THAT(html, HasSubstr(part));
  expectBalanced(html);
}

TEST(CompareHtml, SaysWhyAPlannerHasNoPlanWithoutItsNameTwice) {
  Problem problem = problemOf("1x4:V100-32-SXM2", "gpt3-13b", 16);
  CompareReport report = reportOf(problem, {"metis", "best-type"});
  report.planners.push_back(
      {"optimal", "", {}, {}, Error{Error::Code::Cancelled, "optimal", "ended by time limit before there was a plan", ""}, {}});
  const std::string html = compareHtml(report);
  EXPECT_THAT(html, HasSubstr("No planner found a plan"));
  EXPECT_THAT(html, HasSubstr("lacks"));
  EXPECT_THAT(html, HasSubstr(">infeasible<"));
  EXPECT_THAT(html, HasSubstr(">stopped</span>ended by time limit before there was a plan"));
  EXPECT_EQ(stateOf(report.planners[1]), "infeasible");
  EXPECT_THAT(reasonOf(report.planners[1]), HasSubstr("V100-32-SXM2 alone"));  // best-type does not blame the planner behind it
  EXPECT_THAT(reasonOf(report.planners[1]), Not(HasSubstr("eth")));
  expectBalanced(html);
}

TEST(CompareHtml, IsTheSameTextForTheSamePlans) {
  const Problem problem = problemOf("1x4:A100-80-SXM,1x4:V100-32-SXM2", "gpt3-1.3b", 64);
  EXPECT_EQ(compareHtml(reportOf(problem, {"uniform", "hexiscale"})), compareHtml(reportOf(problem, {"uniform", "hexiscale"})));
}

TEST(KeyFigures, AreThoseOfTheEvaluation) {
  const Problem problem = problemOf("1x4:A100-80-SXM,1x4:V100-32-SXM2", "gpt3-1.3b", 64);
  const Compared one = comparedWith("hexiscale", problem);
  ASSERT_TRUE(one.evaluation);
  const KeyFigures figures = keyFiguresOf(*one.evaluation);
  EXPECT_EQ(figures.iteration, one.evaluation->plan.predicted->iteration);
  EXPECT_EQ(figures.bubbleFraction, one.evaluation->bubbleFraction);
  EXPECT_EQ(figures.usedDevices + figures.idleDevices, 8U);
  ASSERT_TRUE(figures.ownEstimate);
  EXPECT_NEAR(milliseconds(*figures.ownEstimate), one.evaluation->plan.search.at("estimate_ms").get<double>(), 1e-6);
  EXPECT_EQ(figures.stopped, "");
}

TEST(PipelineGroups, FoldNeighboursThatLookAlike) {
  const auto plan = planWith("uniform", problemOf("2x8:A100-80-SXM", "gpt3-1.3b", 64), {.options = {{"tp", "1"}, {"pp", "4"}}});
  ASSERT_TRUE(plan);
  const auto groups = pipelineGroups(*plan);
  std::size_t pipelines = 0;
  for (const PipelineGroup& group : groups) pipelines += group.count;
  EXPECT_EQ(pipelines, plan->pipelines.size());
  EXPECT_LT(groups.size(), plan->pipelines.size());
}

}  // namespace
}  // namespace evenkeel::report
