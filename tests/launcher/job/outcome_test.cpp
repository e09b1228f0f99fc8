// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/outcome.h"

#include <gtest/gtest.h>

namespace evenkeel {
namespace {

RunRecord twoNodes() {
  return {.id = "r", .worldSize = 4, .nodes = {{.name = "a", .rankCount = 2}, {.name = "b", .firstRank = 2, .rankCount = 2}}};
}
Json ended(const char* state) { return {{"seq", 9}, {"time", 9.0}, {"rank", -1}, {"event", "ended"}, {"state", state}}; }
Json failedRank(int rank, double time, const char* cause) {
  return {{"seq", 5}, {"time", time}, {"rank", rank}, {"event", "failed"}, {"reason", "why"}, {"last_step", 3}, {"cause", cause}};
}

TEST(Outcome, IsFinishedWhenAllNodesAre) {
  const RunRecord run = twoNodes();
  Outcome outcome(run);
  outcome.takeRecord(0, ended("finished"));
  EXPECT_EQ(outcome.verdict().state, JobState::Running);
  outcome.takeRecord(1, ended("finished"));
  EXPECT_EQ(outcome.verdict().state, JobState::Finished);
}

// accelerate PR #4139: the rank that reports first is a victim.
TEST(Outcome, NamesTheOwnCauseAlsoWhenAVictimSpokeFirst) {
  const RunRecord run = twoNodes();
  Outcome outcome(run);
  outcome.takeRecord(0, failedRank(0, 1.0, "peer"));
  outcome.takeRecord(1, failedRank(3, 2.0, "own"));
  outcome.takeRecord(1, failedRank(2, 2.5, "own"));
  const auto verdict = outcome.verdict();
  EXPECT_EQ(verdict.state, JobState::Failed);
  EXPECT_EQ(verdict.failed, (JobFailure{.rank = 3, .node = "b", .reason = "why", .lastStep = 3}));
}

TEST(Outcome, NamesTheFirstVictimIfThereIsNothingBetter) {
  const RunRecord run = twoNodes();
  Outcome outcome(run);
  outcome.takeRecord(0, failedRank(1, 2.0, "peer"));
  outcome.takeRecord(1, failedRank(2, 1.0, "peer"));
  EXPECT_EQ(outcome.verdict().failed->rank, 2);
}

TEST(Outcome, SuspectsTheNodeThatDoesNotAnswer) {
  const RunRecord run = twoNodes();
  Outcome outcome(run);
  outcome.takeRecord(0, failedRank(0, 1.0, "peer"));
  outcome.takeRecord(0, ended("failed"));
  outcome.takeRecord(1, {{"seq", 2}, {"rank", 2}, {"event", "step"}, {"step", 7}});
  outcome.takeUnreachable(1, "no route");
  EXPECT_EQ(outcome.verdict().failed,
            (JobFailure{.rank = -1, .node = "b", .reason = "does not answer: no route", .lastStep = 7}));
}

TEST(Outcome, NamesANodeWhoseAgentIsGone) {
  const RunRecord run = twoNodes();
  Outcome outcome(run);
  outcome.takeRecord(0, failedRank(0, 1.0, "peer"));
  outcome.takeGone(1);
  EXPECT_EQ(outcome.verdict().failed->node, "b");
  EXPECT_EQ(outcome.verdict().failed->rank, -1);
}

TEST(Outcome, IsNotKnownWhileANodeThatDoesNotAnswerMayGoOn) {
  const RunRecord run = twoNodes();
  Outcome outcome(run);
  outcome.takeRecord(0, ended("finished"));
  outcome.takeUnreachable(1, "no route");
  EXPECT_EQ(outcome.verdict().state, JobState::Running);
}

TEST(Outcome, IsStoppedWhenAPersonAskedForItAndVictimsComplainAboutThat) {
  RunRecord run = twoNodes();
  run.stopRequested = true;
  Outcome outcome(run);
  outcome.takeRecord(0, ended("stopped"));
  outcome.takeRecord(1, failedRank(2, 1.0, "peer"));
  outcome.takeRecord(1, ended("failed"));
  EXPECT_EQ(outcome.verdict().state, JobState::Stopped);
  EXPECT_FALSE(outcome.verdict().failed);
}

}  // namespace
}  // namespace evenkeel
