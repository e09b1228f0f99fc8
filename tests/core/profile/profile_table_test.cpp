// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/profile_table.h"

#include <gmock/gmock.h>

#include "core/cluster/catalogue.h"
#include "core/profile/table_profile.h"
#include "tests/support/json_mutation.h"
#include "tests/support/sweep.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using testing::HasSubstr;

Training training() { return {.sequenceLength = 2048, .globalBatch = 64, .precision = Precision::Bf16}; }

ProfileTable fc1Table() {
  ProfileTable table;
  table.conditions = {.precision = Precision::Bf16,
                      .sequenceLength = 2048,
                      .model = "gpt3-1.3b",
                      .framework = "by hand",
                      .driver = "",
                      .date = ""};
  auto& points = table.devices["A100-80-SXM"].points[{Op::Fc1, 2}];
  points[2] = {.forward = fromMicroseconds(100),
               .backward = fromMicroseconds(220),
               .saved = Bytes{1000},
               .source = ValueSource::Measured,
               .runs = 20,
               .spread = 0.03};
  points[8] = {.forward = fromMicroseconds(340), .backward = fromMicroseconds(820), .saved = Bytes{4000}};
  return table;
}

OpCost costOf(const ProfileTable& table, int tp, std::int64_t samples, const char* device = "A100-80-SXM", Op op = Op::Fc1) {
  return TableProfile(table, *modelFromArgument("gpt3-1.3b"), training(), "test").cost(*deviceTypeNamed(device), op, tp, samples);
}

TEST(ProfileTable, SurvivesAFile) {
  const ProfileTable table = fc1Table();
  const auto again = parseProfile(toJson(table), "profile.json");
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(toJson(*again), toJson(table));
  const ProfilePoint point = again->devices.at("A100-80-SXM").points.at({Op::Fc1, 2}).at(2);
  EXPECT_EQ(point.source, ValueSource::Measured);
  EXPECT_EQ(point.runs, 20);
  EXPECT_NEAR(microseconds(point.backward), 220, 1e-9);
}

TEST(ProfileTable, NamesWhatIsWrongAndWhere) {
  Json json = toJson(fc1Table());
  json["points"][1]["op"] = "fc3";
  EXPECT_THAT(parseProfile(json, "p.json").error().text(), HasSubstr("p.json /points/1/op"));
  json = toJson(fc1Table());
  json["points"][1]["samples"] = 2;
  EXPECT_THAT(parseProfile(json, "p.json").error().what, HasSubstr("twice"));
  json = toJson(fc1Table());
  for (Json& point : json["points"]) point["forward_us"] = point["backward_us"] = 0;
  EXPECT_THAT(parseProfile(json, "p.json").error().what, HasSubstr("takes no time"));
  json = toJson(fc1Table());
  json["points"] = Json::array();
  json["devices"] = Json::array();
  EXPECT_THAT(parseProfile(json, "p.json").error().what, HasSubstr("no point"));
}

TEST(TableProfile, GivesPointsAsTheyAreAndMarksWhatLiesBetween) {
  const ProfileTable table = fc1Table();
  EXPECT_NEAR(microseconds(costOf(table, 2, 2).forward), 100, 1e-9);
  EXPECT_EQ(costOf(table, 2, 2).source, ValueSource::Measured);
  const OpCost between = costOf(table, 2, 4);
  EXPECT_NEAR(microseconds(between.forward), 180, 1e-9);
  EXPECT_NEAR(microseconds(between.backward), 420, 1e-9);
  EXPECT_EQ(between.saved.value, 2000);
  EXPECT_EQ(between.source, ValueSource::Interpolated);
  EXPECT_NEAR(microseconds(costOf(table, 2, 16).forward), 660, 1e-9);  // as between the last two
}

TEST(TableProfile, ScalesAsTheAnalyticProfileDoesWhereNoTwoPointsHelp) {
  const ProfileTable table = fc1Table();
  const AnalyticProfile analytic(*modelFromArgument("gpt3-1.3b"), training());
  const DeviceType device = *deviceTypeNamed("A100-80-SXM");
  const double smaller = analytic.cost(device, Op::Fc1, 2, 1).forward / analytic.cost(device, Op::Fc1, 2, 2).forward;
  EXPECT_NEAR(microseconds(costOf(table, 2, 1).forward), 100 * smaller, 1e-9);
  const double split = analytic.cost(device, Op::Fc1, 4, 2).forward / analytic.cost(device, Op::Fc1, 2, 2).forward;
  EXPECT_NEAR(microseconds(costOf(table, 4, 2).forward), 100 * split, 1e-9);
  EXPECT_EQ(costOf(table, 4, 2).source, ValueSource::Interpolated);
}

TEST(TableProfile, IsAnalyticWhereItKnowsNothing) {
  const ProfileTable table = fc1Table();
  const AnalyticProfile analytic(*modelFromArgument("gpt3-1.3b"), training());
  EXPECT_EQ(costOf(table, 2, 2, "H100-80-SXM").source, ValueSource::Analytic);
  EXPECT_EQ(costOf(table, 2, 2, "A100-80-SXM", Op::Fc2).forward,
            analytic.cost(*deviceTypeNamed("A100-80-SXM"), Op::Fc2, 2, 2).forward);
}

TEST(TableProfile, RefusesAProfileOfOtherConditions) {
  const TemporaryDirectory folder;
  const std::string file = folder.file("a100.json", prettyText(toJson(fc1Table())));
  Training other = training();
  const Cluster cluster = *parseClusterShorthand("1x1:A100-80-SXM,1x1:T4");
  const auto mixed = profileFromArgument(file, cluster, *modelFromArgument("gpt3-1.3b"), other);
  ASSERT_TRUE(mixed.ok());
  EXPECT_THAT((*mixed)->description(), HasSubstr("T4 from the device table"));
  EXPECT_THAT(profileFromArgument(file, *parseClusterShorthand("1x2:T4"), *modelFromArgument("gpt3-1.3b"), other).error().what,
              HasSubstr("has nothing of T4"));
  other.sequenceLength = 1024;
  EXPECT_THAT(profileFromArgument(file, cluster, *modelFromArgument("gpt3-1.3b"), other).error().what,
              HasSubstr("sequence length 2048"));
  other = training();
  other.precision = Precision::Fp16;
  EXPECT_THAT(profileFromArgument(file, cluster, *modelFromArgument("gpt3-1.3b"), other).error().what, HasSubstr("bf16"));
}

// Whatever a file holds, reading it ends with a profile or an error that names the file.
TEST(ProfileTable, EndsWithAProfileOrAnErrorForEveryMutation) {
  const Json json = toJson(fc1Table());
  std::mt19937 random(4);
  for (int i = 0; i < sweep(3000, 100'000); ++i) {
    Json broken = json;
    for (int changes = 1 + i % 3; changes > 0; --changes) mutate(broken, random);
    const auto parsed = parseProfile(broken, "p.json");
    if (!parsed.ok()) {
      ASSERT_THAT(parsed.error().where, HasSubstr("p.json"));
      continue;
    }
    for (const auto& [device, profile] : parsed->devices) {
      for (const auto& [key, points] : profile.points) {
        for (const auto& [samples, point] : points) ASSERT_GE(point.forward.value, 0) << device << samples;
      }
    }
  }
}

}  // namespace
}  // namespace evenkeel
