// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "launcher/job/sqlite.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunRecord someRun(const std::string& id, double created = 100) {
  RunRecord run{.id = id, .created = created, .worldSize = 2};
  run.plan = {{"format", "evenkeel.plan/1"}};
  run.run = {{"steps", 3}};
  run.nodes = {{.name = "a",
                .ssh = {.host = "h", .port = 2222, .user = "u", .identity = "/k", .knownHosts = "/h"},
                .directory = "/d",
                .agent = "/a",
                .rankCount = 2}};
  run.timeouts.reconnect = std::chrono::milliseconds(1234);
  run.predictedIterationMs = 12.5;
  return run;
}

Json step(std::int64_t seq, int rank, std::int64_t number, const Json& loss) {
  return {{"seq", seq},
          {"time", 1.0 * static_cast<double>(seq)},
          {"rank", rank},
          {"event", "step"},
          {"step", number},
          {"loss", loss},
          {"tokens", 1000},
          {"iteration_ms", 100.0 + rank},
          {"peak_bytes", 10 + number}};
}

TEST(RunHistory, KeepsARunAsItWas) {
  const TemporaryDirectory directory;
  {
    auto history = RunHistory::open(directory.path() / "runs.sqlite");
    ASSERT_TRUE(history) << history.error().text();
    ASSERT_TRUE((*history)->add(someRun("r1")));
    ASSERT_TRUE((*history)->setState("r1", JobState::Failed,
                                     JobFailure{.rank = 1, .node = "a", .reason = "it's \"q\" größe", .lastStep = 4}));
  }
  auto history = RunHistory::open(directory.path() / "runs.sqlite");
  ASSERT_TRUE(history);
  const auto run = (*history)->find("r1");
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_EQ(run->nodes, someRun("r1").nodes);
  EXPECT_EQ(run->timeouts, someRun("r1").timeouts);
  EXPECT_EQ(run->plan, someRun("r1").plan);
  EXPECT_EQ(run->predictedIterationMs, 12.5);
  EXPECT_EQ(run->state, JobState::Failed);
  EXPECT_EQ(run->failed->reason, "it's \"q\" größe");
  EXPECT_EQ((*history)->find("r2").error().code, Error::Code::InvalidInput);
  struct stat status {};
  ::stat((directory.path() / "runs.sqlite").c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(RunHistory, CountsARecordOnceHoweverOftenItComes) {
  const TemporaryDirectory directory;
  auto history = RunHistory::open(directory.path() / "h");
  ASSERT_TRUE((*history)->add(someRun("r1")));
  const std::vector<Json> records{step(1, 0, 1, 6.0), step(2, 1, 1, 6.0), step(3, 0, 2, nullptr), step(4, 1, 2, nullptr),
                                  step(5, 0, 3, 4.0)};
  ASSERT_TRUE((*history)->append("r1", 0, records));
  ASSERT_TRUE((*history)->append("r1", 0, records));
  EXPECT_EQ(*(*history)->lastSeq("r1", 0), 5);
  const auto status = (*history)->statusOf("r1");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->steps, 2);  // the third one is reported by one rank only
  ASSERT_EQ(status->losses.size(), 2U);
  EXPECT_EQ(status->losses[0], 6.0);
  EXPECT_TRUE(std::isnan(status->losses[1]));
  EXPECT_EQ(status->iterationMs->median, 101.0);  // that of the slowest rank
  EXPECT_NEAR(status->tokensPerSecond, 1000 / 0.101, 1e-6);
  EXPECT_EQ(status->peakBytes.at(0), 13);
  EXPECT_EQ(status->peakBytes.at(1), 12);
  int replayed = 0;
  ASSERT_TRUE((*history)->replay("r1", [&](int, const Json&) { ++replayed; }));
  EXPECT_EQ(replayed, 5);
}

TEST(RunHistory, ListsTheNewestFirst) {
  const TemporaryDirectory directory;
  auto history = RunHistory::open(directory.path() / "h");
  ASSERT_TRUE((*history)->add(someRun("old", 1)));
  ASSERT_TRUE((*history)->add(someRun("new", 2)));
  EXPECT_FALSE((*history)->add(someRun("new", 2)));
  EXPECT_THAT(*(*history)->rows(), ElementsAre(RunRow{.run = "new", .started = 2}, RunRow{.run = "old", .started = 1}));
}

TEST(RunHistory, IsSafeForSeveralAtOnce) {
  const TemporaryDirectory directory;
  const auto file = directory.path() / "h";
  {
    std::vector<std::jthread> writers;
    for (int writer = 0; writer < 4; ++writer) {
      writers.emplace_back([&, writer] {
        auto history = RunHistory::open(file);  // all find it new
        ASSERT_TRUE(history) << history.error().text();
        const std::string id = "r" + std::to_string(writer);
        ASSERT_TRUE((*history)->add(someRun(id)));
        for (std::int64_t seq = 1; seq <= 100; ++seq) ASSERT_TRUE((*history)->append(id, 0, {step(seq, 0, seq, 1.0)}));
      });
    }
  }
  auto history = RunHistory::open(file);
  EXPECT_EQ((*history)->rows()->size(), 4U);
  for (int writer = 0; writer < 4; ++writer) EXPECT_EQ(*(*history)->lastSeq("r" + std::to_string(writer), 0), 100);
}

TEST(RunHistory, RefusesADamagedOrNewerFile) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "text") << std::string(5000, 'x');
  EXPECT_THAT(RunHistory::open(directory.path() / "text").error().text(), HasSubstr("is damaged, or no run history"));
  {
    auto newer = Database::open(directory.path() / "newer");
    ASSERT_TRUE(newer && newer->execute("PRAGMA user_version = 7"));
  }
  EXPECT_THAT(RunHistory::open(directory.path() / "newer").error().text(),
              HasSubstr("written by a newer Evenkeel (schema 7; this one knows 2)"));
  EXPECT_THAT(RunHistory::open(directory.path() / "no" / "folder").error().text(), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace evenkeel
