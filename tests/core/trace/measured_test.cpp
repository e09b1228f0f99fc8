// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Plan twoStages() {
  return planOf(*parseClusterShorthand("1x3:cpu"), *modelFromArgument("tiny-gpt"), {{4, 1, {"cpu-0/2", "cpu-0/0"}, {0, 9, 18}}, {2, 1, {"cpu-0/1"}, {0, 18}}});
}

/// As the agent journals them.
void journal(std::vector<Json>& records, int rank, std::int64_t step, const std::vector<MeasuredSpan>& spans) {
  for (Json fields : timelineEvents(step, spans)) {
    fields["event"] = kTimelineEvent;
    fields["rank"] = rank;
    records.push_back(std::move(fields));
  }
}

using Kind = Span::Kind;

TEST(MeasuredTimeline, PutsRanksInTheOrderOfThePlanAndTimesFromTheFirstBegin) {
  std::vector<Json> records;
  journal(records, 0, 3, {{Kind::Wait, 0, fromMilliseconds(-9), fromMilliseconds(-4), 2}, {Kind::Forward, 0, fromMilliseconds(-4), fromMilliseconds(-2), -1}});
  journal(records, 2, 3, {{Kind::Forward, 0, fromMilliseconds(-10), fromMilliseconds(-5), -1}, {Kind::Optimizer, -1, fromMilliseconds(1), fromMilliseconds(2), -1}});
  journal(records, 1, 3, {{Kind::Backward, 1, fromMilliseconds(-8), fromMilliseconds(-1), -1}});
  const auto timeline = measuredTimeline(twoStages(), 3, records);
  ASSERT_TRUE(timeline) << timeline.error().text();
  EXPECT_THAT(timeline->lanes, ElementsAre(Lane{"cpu-0/2", 0, 0}, Lane{"cpu-0/0", 0, 1}, Lane{"cpu-0/1", 1, 0}));
  ASSERT_THAT(timeline->spans, SizeIs(5));
  EXPECT_EQ(timeline->spans[0].lane, 0);
  EXPECT_EQ(timeline->spans[0].start.value, 0);
  EXPECT_NEAR(timeline->spans[1].end.value, 0.012, 1e-9);
  const Span& wait = timeline->spans[2];
  EXPECT_EQ(wait.kind, Kind::Wait);
  EXPECT_EQ(wait.lane, 1);
  EXPECT_EQ(wait.waitsForLane, 0) << "rank 2 is the first lane";
  EXPECT_NEAR(wait.start.value, 0.001, 1e-9);
  EXPECT_EQ(timeline->spans[4].microBatch, 1);
}

TEST(MeasuredTimeline, SurvivesLinesThatAreShort) {
  std::vector<MeasuredSpan> spans;
  for (int m = 0; m < 4500; ++m) spans.push_back({Kind::Forward, m, Seconds{m * 1e-3}, Seconds{m * 1e-3 + 5e-4}, -1});
  std::vector<Json> records;
  journal(records, 1, 1, spans);
  EXPECT_THAT(records, SizeIs(3));
  for (const Json& record : records) EXPECT_LT(record.dump().size(), std::size_t{1} << 20U) << "the agent drops longer ones";
  const auto timeline = measuredTimeline(twoStages(), 1, records);
  ASSERT_TRUE(timeline);
  EXPECT_THAT(timeline->spans, SizeIs(4500));
  EXPECT_EQ(timeline->spans.back().microBatch, 4499);
}

TEST(MeasuredTimeline, PassesOverWhatIsDamagedAndNamesTheStepsThatThereAre) {
  std::vector<Json> records = {Json::parse(R"({"event": "timeline", "step": 2, "rank": 0, "spans": [["forward", 0, 1, 2, -1], ["dance", 0, 1, 2, -1], ["wait", 0], 7]})"),
                               Json::parse(R"({"event": "timeline", "step": 2, "rank": 9, "spans": [["forward", 0, 1, 2, -1]]})"),
                               Json::parse(R"({"event": "timeline", "step": "2", "rank": 0, "spans": []})"), Json::parse(R"({"event": "timeline", "step": 5})"),
                               Json::parse(R"({"event": "step", "step": 4, "rank": 0})"), Json::parse("[1]")};
  const auto timeline = measuredTimeline(twoStages(), 2, records);
  ASSERT_TRUE(timeline);
  EXPECT_THAT(timeline->spans, SizeIs(1));
  EXPECT_THAT(tracedSteps(records), ElementsAre(2));
  EXPECT_THAT(measuredTimeline(twoStages(), 4, records).error().text(), HasSubstr("it has those of 2"));
  EXPECT_THAT(measuredTimeline(twoStages(), 4, {}).error().text(), HasSubstr("--trace-step"));
}

}  // namespace
}  // namespace evenkeel
