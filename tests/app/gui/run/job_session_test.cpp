// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/job_session.h"

#include <gmock/gmock.h>

#include <QTest>
#include <cmath>
#include <csignal>

#include "tests/app/gui/run/run_fixture.h"
#include "tests/support/processes.h"

namespace evenkeel::gui {
namespace {

constexpr int kLongMs = 90'000;  // a busy machine; nothing here waits for it to pass

/// Collects what a session tells.
struct Listener {
  explicit Listener(JobSession& theSession) : session(theSession) {}
  const SessionState& poll() {
    SessionUpdate update = session.takeUpdate();
    state = std::move(update.state);
    steps.insert(steps.end(), update.steps.begin(), update.steps.end());
    logs.insert(logs.end(), update.logs.begin(), update.logs.end());
    return state;
  }
  bool waitUntil(SessionPhase phase) {
    return QTest::qWaitFor([&] { return poll().phase == phase; }, kLongMs);
  }
  JobSession& session;
  SessionState state;
  std::vector<StepRecord> steps;
  std::vector<LogEntry> logs;
};

class JobSessionTest : public RealJobs {};

TEST_F(JobSessionTest, RunsAShortJobToItsEndAndTellsEachStepOnce) {
  JobSession session(std::make_shared<LoginDesk>());
  Listener listener(session);
  session.start(request(3));
  ASSERT_TRUE(listener.waitUntil(SessionPhase::Over));
  ASSERT_FALSE(listener.state.error) << listener.state.error->text();
  EXPECT_EQ(listener.state.job, JobState::Finished);
  EXPECT_EQ(listener.state.worldSize, 2);
  EXPECT_FALSE(listener.state.run.empty());
  EXPECT_FALSE(listener.state.rows.empty());
  for (const PreflightRow& row : listener.state.rows) EXPECT_TRUE(row.passed) << row.check << ": " << row.detail;
  ASSERT_EQ(listener.steps.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(listener.steps[i].step, static_cast<std::int64_t>(i) + 1);
  EXPECT_NEAR(listener.steps[0].loss, std::log(256.0), 0.5);

  JobSession later(std::make_shared<LoginDesk>());
  Listener replay(later);
  later.attach(listener.state.run);
  ASSERT_TRUE(replay.waitUntil(SessionPhase::Over));
  EXPECT_EQ(replay.state.job, JobState::Finished);
  EXPECT_EQ(replay.steps, listener.steps) << "an ended run shows the same curves";
}

TEST_F(JobSessionTest, LeavesTheJobRunningWhenItEndsAndFindsItAgain) {
  std::string run;
  {
    JobSession session(std::make_shared<LoginDesk>());
    Listener listener(session);
    session.start(request(1'000'000));
    ASSERT_TRUE(QTest::qWaitFor([&] { return listener.poll().phase == SessionPhase::Over || !listener.steps.empty(); }, kLongMs));
    ASSERT_FALSE(listener.state.error) << listener.state.error->text();
    run = listener.state.run;
  }
  JobSession session(std::make_shared<LoginDesk>());
  Listener listener(session);
  session.attach(run);
  ASSERT_TRUE(
      QTest::qWaitFor([&] { return listener.poll().phase == SessionPhase::Over || listener.steps.size() >= 2; }, kLongMs));
  EXPECT_EQ(listener.state.job, JobState::Running);
  EXPECT_EQ(listener.steps.front().step, 1);
  session.stopJob();
  EXPECT_TRUE(listener.poll().isStopping || listener.state.stopReport);
  ASSERT_TRUE(listener.waitUntil(SessionPhase::Over));
  ASSERT_TRUE(QTest::qWaitFor([&] { return listener.poll().stopReport.has_value(); }, kLongMs));
  EXPECT_TRUE(listener.state.stopReport->complete());
  EXPECT_EQ(listener.state.job, JobState::Stopped);
}

// accelerate PR #4139: the reporter was a victim. The rank that was killed is the one that is named.
TEST_F(JobSessionTest, NamesTheRankThatWasKilled) {
  JobSession session(std::make_shared<LoginDesk>());
  Listener listener(session);
  session.start(request(1'000'000));
  ASSERT_TRUE(QTest::qWaitFor([&] { return listener.poll().phase == SessionPhase::Over || !listener.steps.empty(); }, kLongMs));
  const auto victim = workerOfRank(directory_.path().string(), 1);
  ASSERT_TRUE(victim);
  ::kill(*victim, SIGKILL);
  ASSERT_TRUE(listener.waitUntil(SessionPhase::Over));
  EXPECT_EQ(listener.state.job, JobState::Failed);
  ASSERT_TRUE(listener.state.failure);
  EXPECT_EQ(listener.state.failure->rank, 1);
  EXPECT_EQ(listener.state.failure->node, "cpu-0");
  EXPECT_THAT(listener.state.failure->reason, ::testing::HasSubstr("SIGKILL"));
  EXPECT_GE(listener.state.failure->lastStep, 1);
}

TEST_F(JobSessionTest, SaysWhatIsMissingWhenAJobCannotStart) {
  LaunchRequest request = this->request(3);
  request.run.train = {(directory_.path() / "no such text.txt").string()};
  JobSession session(std::make_shared<LoginDesk>());
  Listener listener(session);
  session.start(request);
  ASSERT_TRUE(listener.waitUntil(SessionPhase::Over));
  ASSERT_TRUE(listener.state.error);
  EXPECT_THAT(listener.state.error->text(), ::testing::HasSubstr("no such text.txt"));
  EXPECT_TRUE(listener.state.run.empty());
  EXPECT_TRUE(
      std::ranges::any_of(listener.state.rows, [](const PreflightRow& row) { return !row.passed && row.check == "data"; }));
}

TEST_F(JobSessionTest, ChecksWithoutStartingAnything) {
  JobSession session(std::make_shared<LoginDesk>());
  Listener listener(session);
  session.check(request(3));
  ASSERT_TRUE(listener.waitUntil(SessionPhase::Over));
  EXPECT_FALSE(listener.state.error);
  EXPECT_GT(listener.state.rows.size(), 3U);
  EXPECT_TRUE(Launcher::open()->runs()->empty());
}

TEST_F(JobSessionTest, OfAnUnknownRunSaysSo) {
  JobSession session(std::make_shared<LoginDesk>());
  Listener listener(session);
  session.attach("no-such-run");
  ASSERT_TRUE(listener.waitUntil(SessionPhase::Over));
  ASSERT_TRUE(listener.state.error);
  EXPECT_EQ(listener.state.error->code, Error::Code::InvalidInput);
}

TEST_F(JobSessionTest, SaysThatTheHistoryCannotBeOpened) {
  ::setenv("XDG_DATA_HOME", data().c_str(), 1);  // a file where a folder should be
  JobSession session(std::make_shared<LoginDesk>());
  Listener listener(session);
  session.start(request(3));
  ASSERT_TRUE(listener.waitUntil(SessionPhase::Over));
  EXPECT_TRUE(listener.state.error);
}

}  // namespace
}  // namespace evenkeel::gui
