// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

Timeline twoLanes() {
  Timeline timeline;
  timeline.lanes = {{"cpu-0/0", 0, 0}, {"cpu-0/1", 0, 1}};
  timeline.spans = {{.kind = Span::Kind::Forward, .lane = 0, .microBatch = 0, .start = {0.0}, .end = {1.0}},
                    {.kind = Span::Kind::Forward, .lane = 0, .microBatch = 1, .start = {1.0}, .end = {2.0}},
                    {.kind = Span::Kind::Send, .lane = 0, .microBatch = 0, .start = {1.0}, .end = {1.5}},
                    {.kind = Span::Kind::Wait, .lane = 1, .microBatch = 0, .start = {0.0}, .end = {1.5}, .waitsForLane = 0},
                    {.kind = Span::Kind::Forward, .lane = 1, .microBatch = 0, .start = {1.5}, .end = {3.0}}};
  return timeline;
}

// perfetto #432, #978; catapult #4055: overlapping events, rows without names (field-faults).
TEST(ChromeTrace, NamesEveryRowAndNoTwoSpansOfARowOverlap) {
  const Json trace = chromeTrace(twoLanes());
  std::set<std::pair<int, int>> named;
  std::map<std::pair<int, int>, double> lastEnd;
  for (const Json& event : trace.at("traceEvents")) {
    const std::pair<int, int> row{event.at("pid").get<int>(), event.at("tid").get<int>()};
    if (event.at("ph") == "M" && event.at("name") == "thread_name") {
      EXPECT_TRUE(named.insert(row).second);
    }
    if (event.at("ph") != "X") continue;
    EXPECT_TRUE(named.contains(row));
    EXPECT_GE(event.at("ts").get<double>() + 1e-6, lastEnd[row]);
    EXPECT_GE(event.at("dur").get<double>(), 0.0);
    lastEnd[row] = event.at("ts").get<double>() + event.at("dur").get<double>();
  }
  EXPECT_EQ(named.size(), 3U);  // two lanes and the sends of one
}

TEST(ChromeTrace, SaysWhomAWaitIsFor) {
  const Json trace = chromeTrace(twoLanes());
  bool found = false;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("cat") == "wait") found = event.at("args").at("waits_for") == "cpu-0/0";
  }
  EXPECT_TRUE(found);
}

// catapult #4055: traces of 800 MB (field-faults).
TEST(ChromeTrace, KeepsTheEarliestSpansAndSaysHowManyAreLeftOut) {
  const Json trace = chromeTrace(twoLanes(), 2);
  int spans = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") {
      ++spans;
      EXPECT_EQ(event.at("ts"), 0.0);
    }
  }
  EXPECT_EQ(spans, 2);
  EXPECT_THAT(trace.at("traceEvents").back().at("name").get<std::string>(), HasSubstr("3 later spans"));
}

}  // namespace
}  // namespace evenkeel
