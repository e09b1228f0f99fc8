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

TEST(RunHistory, KnowsARunByABeginningThatOnlyItHas) {
  const TemporaryDirectory directory;
  auto history = RunHistory::open(directory.path() / "h");
  double created = 100;
  for (const char* id : {"20261201-101500-ab1", "20261201-101500-ab12", "20261201-111500-cd34", "20261202-091500-ef56"})
    ASSERT_TRUE((*history)->add(someRun(id, ++created)));
  const auto named = [&](const char* beginning) {
    const auto id = (*history)->idNamed(beginning);
    EXPECT_TRUE(id || id.error().code == Error::Code::InvalidInput);
    return id ? *id : id.error().text();
  };
  EXPECT_EQ(named("20261202"), "20261202-091500-ef56");
  EXPECT_EQ(named("20261201-11"), "20261201-111500-cd34");
  EXPECT_EQ(named("20261201-101500-ab12"), "20261201-101500-ab12");
  EXPECT_EQ(named("20261201-101500-ab1"), "20261201-101500-ab1") << "a whole id is one, whatever begins with it";
  EXPECT_EQ(named("20261201-10"), "20261201-10: is the beginning of several runs: 20261201-101500-ab12, 20261201-101500-ab1; write more of it");
  for (const char* nothing : {"2027", "%", "2026120_", "", "ef56"}) EXPECT_THAT(named(nothing), HasSubstr("no such run")) << nothing;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE((*history)->add(someRun("2026-" + std::to_string(i))));
  EXPECT_THAT(named("2026"), HasSubstr(" and 3 older ones"));
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

/// As the first versions made them.
void makeOldHistory(const std::filesystem::path& file, int version) {
  const std::string later = version > 1 ? ", continues TEXT NOT NULL DEFAULT ''" : "";
  auto old = Database::open(file);
  ASSERT_TRUE(old);
  ASSERT_TRUE(old->execute(
      "CREATE TABLE runs (id TEXT PRIMARY KEY, created REAL NOT NULL, state TEXT NOT NULL, world_size INTEGER NOT NULL, plan TEXT NOT NULL, "
      "run TEXT NOT NULL, nodes TEXT NOT NULL, timeouts TEXT NOT NULL, predicted_iteration_ms REAL, failed TEXT, stop_requested INTEGER NOT NULL "
      "DEFAULT 0" + later + ");"
      "CREATE TABLE events (run TEXT NOT NULL, node INTEGER NOT NULL, seq INTEGER NOT NULL, time REAL NOT NULL, record TEXT NOT NULL, "
      "PRIMARY KEY (run, node, seq)) WITHOUT ROWID;"
      "CREATE TABLE steps (run TEXT NOT NULL, step INTEGER NOT NULL, rank INTEGER NOT NULL, loss REAL, tokens INTEGER, iteration_ms REAL, "
      "compute_ms REAL, p2p_ms REAL, bubble_ms REAL, sync_ms REAL, optimizer_ms REAL, peak_bytes INTEGER, grad_norm REAL, learning_rate REAL, "
      "PRIMARY KEY (run, step, rank)) WITHOUT ROWID;"
      "INSERT INTO runs (id, created, state, world_size, plan, run, nodes, timeouts, stop_requested) VALUES ('old', 5, 'failed', 1, "
      "'{\"format\":\"evenkeel.plan/1\"}', '{\"steps\":3}', '[{\"name\":\"a\",\"ssh\":{\"host\":\"h\",\"port\":22,\"user\":\"u\",\"identity\":\"\","
      "\"known_hosts\":\"\"},\"directory\":\"/d\",\"agent\":\"/a\",\"first_rank\":0,\"rank_count\":1}]', "
      "'{\"connect_ms\":1,\"command_ms\":2,\"start_ms\":3,\"reconnect_ms\":4,\"stop_ms\":5,\"peer_ms\":6}', 1);"
      "INSERT INTO steps (run, step, rank, loss, tokens, iteration_ms) VALUES ('old', 1, 0, 5.5, 10, 100);"
      "PRAGMA user_version = " + std::to_string(version) + ";"));
}

TEST(RunHistory, TakesOverWhatEarlierVersionsWrote) {
  for (const int version : {1, 2}) {
    const TemporaryDirectory directory;
    const auto file = directory.path() / "runs.sqlite";
    makeOldHistory(file, version);
    for (int opened = 0; opened < 2; ++opened) {  // what was taken over is not taken over again
      auto history = RunHistory::open(file);
      ASSERT_TRUE(history) << version << ": " << history.error().text();
      const auto old = (*history)->find("old");
      ASSERT_TRUE(old) << version << ": " << old.error().text();
      EXPECT_EQ(old->nodes.front().ssh.host, "h");
      EXPECT_TRUE(old->stopRequested);
      EXPECT_EQ(old->continues, "");
      EXPECT_FALSE(old->slurm);
      EXPECT_THAT((*history)->statusOf("old")->losses, ElementsAre(5.5));
      RunRecord later = someRun("later" + std::to_string(opened));
      later.continues = "old";
      later.slurm = SlurmJob{.id = "17", .request = {.login = {.host = "l"}, .options = {{"partition", "x"}}, .folder = "/f"}, .directory = "/d"};
      ASSERT_TRUE((*history)->add(later));
      EXPECT_EQ((*history)->find(later.id)->slurm, later.slurm);
      EXPECT_THAT((*history)->statusOf(later.id)->attempts, ElementsAre("old"));
      EXPECT_THAT(*(*history)->rows(), ::testing::Contains(RunRow{.run = later.id, .started = 100, .steps = 1, .isQueued = true})) << "as its summary says";
    }
  }
}

TEST(RunHistory, KnowsWhichRunsWaitInSlurmsQueue) {
  const TemporaryDirectory directory;
  auto history = RunHistory::open(directory.path() / "runs.sqlite");
  ASSERT_TRUE(history) << history.error().text();
  const auto isQueued = [&](const std::string& run) {
    const auto rows = (*history)->rows();
    const auto row = std::ranges::find(*rows, run, &RunRow::run);
    return row != rows->end() && row->isQueued;
  };
  RunRecord record = someRun("waits");
  record.slurm = SlurmJob{.id = {}, .request = {.login = {.host = "l"}, .options = {}, .folder = "/f"}, .directory = "/d"};
  ASSERT_TRUE((*history)->add(record));
  EXPECT_FALSE(isQueued("waits")) << "not handed over yet";
  record.slurm->id = "17";
  ASSERT_TRUE((*history)->setSlurmJob("waits", *record.slurm));
  EXPECT_TRUE(isQueued("waits"));
  EXPECT_EQ(toJson(*(*history)->rows())["runs"][0]["queued"], true);
  ASSERT_TRUE((*history)->setState("waits", JobState::Running));
  EXPECT_FALSE(isQueued("waits"));
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
              HasSubstr("written by a newer Evenkeel (schema 7; this one knows 3)"));
  EXPECT_THAT(RunHistory::open(directory.path() / "no" / "folder").error().text(), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace evenkeel
