// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/project.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

Project example() {
  Project project;
  project.cluster = *parseClusterShorthand("1x2:cpu@0.5,1x2:cpu@0.25");
  project.model = *modelFromArgument("tiny-gpt");
  project.training.globalBatch = 13;
  project.layout["cpu-0"] = {20, 40.5};
  project.plans.push_back({"by hand", planOf(project.cluster, *project.model, {{13, 2, {"cpu-0/0"}, {0, 18}}})});
  project.runs = {"20261130-114501-ab12"};
  project.extra = {{"author", "me"}};
  return project;
}

TEST(ProjectFile, RoundTripsEveryField) {
  const Json written = toJson(example());
  const auto again = parseProject(written, "p.evenkeel");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(toJson(*again).dump(), written.dump());
  EXPECT_EQ(again->training, example().training);
  EXPECT_EQ(written["author"], "me");
}

TEST(ProjectFile, MayBeEmpty) {
  const auto empty = parseProject(toJson(Project{}), "p.evenkeel");
  ASSERT_TRUE(empty) << empty.error().text();
  EXPECT_EQ(*empty, Project{});
  EXPECT_FALSE(empty->problem());
}

TEST(ProjectFile, NamesThePlaceOfAMistakeInAPlan) {
  Json json = toJson(example());
  json["plans"][0]["plan"]["pipelines"][0]["micro_batch"] = 0;
  EXPECT_THAT(parseProject(json, "p.evenkeel").error().text(), HasSubstr("p.evenkeel /plans/0/plan /pipelines/0/micro_batch: is 0"));
}

TEST(Project, ResolvesWhatItsTrainingLeavesOpen) {
  const auto problem = example().problem();
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->training.globalBatch, 13);
  EXPECT_EQ(problem->training.sequenceLength, 128);
}

}  // namespace
}  // namespace evenkeel
