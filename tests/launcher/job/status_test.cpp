// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/status.h"

#include <gtest/gtest.h>

#include <limits>

namespace evenkeel {
namespace {

TEST(Spread, IsThatOfTheSortedValues) {
  std::vector<double> values;
  for (int i = 100; i >= 0; --i) values.push_back(i);
  EXPECT_EQ(spreadOf(values), (JobStatus::Spread{.median = 50, .p5 = 5, .p95 = 95}));
  EXPECT_EQ(spreadOf({7}), (JobStatus::Spread{.median = 7, .p5 = 7, .p95 = 7}));
  EXPECT_EQ(spreadOf({1, 2}).median, 1.5);
}

// 13 times slower used to read "-93 %".
TEST(AgainstPrediction, IsAFactorWhereAPercentageSaysLittle) {
  EXPECT_EQ(againstPrediction(100, 93), "-7 %");
  EXPECT_EQ(againstPrediction(100, 104), "+4 %");
  EXPECT_EQ(againstPrediction(100, 100), "+0 %");
  EXPECT_EQ(againstPrediction(199, 100), "-50 %");
  EXPECT_EQ(againstPrediction(210, 100), "2.1x slower than predicted");
  EXPECT_EQ(againstPrediction(1300, 100), "13x slower than predicted");
  EXPECT_EQ(againstPrediction(99.7, 10), "10x slower than predicted");
  EXPECT_EQ(againstPrediction(100, 1234), "12x faster than predicted");
}

TEST(JobStatusJson, HasTheFieldsOfTheDesign) {
  const JobStatus status{.run = "20261130-114501-ab12",
                         .state = JobState::Failed,
                         .steps = 2,
                         .losses = {6.0, 5.5},
                         .iterationMs = JobStatus::Spread{.median = 10, .p5 = 9, .p95 = 12},
                         .tokensPerSecond = 1000,
                         .peakBytes = {{0, 5}, {1, 6}},
                         .failed = JobFailure{.rank = 1, .node = "b", .reason = "killed by SIGKILL", .lastStep = 2}};
  EXPECT_EQ(toJson(status).dump(), R"({"run":"20261130-114501-ab12","state":"failed","steps":2,"losses":[6.0,5.5],)"
                                   R"("iteration_ms":{"median":10.0,"p5":9.0,"p95":12.0},)"
                                   R"("predicted_iteration_ms":null,"tokens_per_s":1000.0,"peak_bytes":{"0":5,"1":6},)"
                                   R"("failed":{"rank":1,"node":"b","reason":"killed by SIGKILL","last_step":2}})");
}

// wandb #2202: a loss that is not a number was shown as 0, or not at all.
TEST(JobStatusJson, ShowsALossThatIsNotANumberAsNull) {
  const JobStatus status{.run = "r", .steps = 2, .losses = {6.0, std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_EQ(toJson(status)["losses"].dump(), "[6.0,null]");
  EXPECT_TRUE(toJson(status)["failed"].is_null());
}

TEST(RunsJson, SaysWhenARunStarted) {
  EXPECT_EQ(toJson(std::vector<RunRow>{{.run = "r", .state = JobState::Running, .started = 1795952701, .steps = 3}}).dump(),
            R"({"runs":[{"run":"r","state":"running","started":"2026-11-29T11:45:01Z","steps":3}]})");
}

TEST(JobState, HasANameForEachAndBack) {
  for (const JobState state : {JobState::Preparing, JobState::Running, JobState::Finished, JobState::Failed, JobState::Stopped}) {
    EXPECT_EQ(jobStateOf(name(state)), state);
  }
  EXPECT_EQ(jobStateOf("dancing"), std::nullopt);
}

}  // namespace
}  // namespace evenkeel
