// SPDX-License-Identifier: GPL-3.0-or-later
// The whole loop on this machine, through the command line only: plan, launch, watch, stop, and what a killed worker does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/processes.h"
#include "tests/support/program.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

class Loop : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(std::filesystem::path(EVENKEEL_BIN_DIR) / "evenkeel-worker")) GTEST_SKIP() << "built without LibTorch";
    std::string text;
    for (int i = 0; i < 3000; ++i) text += "the quick brown fox " + std::to_string(i * i % 97) + " jumps over the lazy dog\n";
    data_ = cli_.folder().file("text.txt", text);
  }
  void plan(const std::string& cluster, const std::string& batch, const std::string& planner = "eth") {
    const ProgramResult result = cli_.run({"plan", "--cluster", cluster, "--model", "tiny-gpt", "--global-batch", batch, "--sequence-length", "32",
                                           "--planner", planner, "--out", "plan.json"});
    ASSERT_EQ(result.exitCode, 0) << result.err;
  }
  std::vector<std::string> launch(const std::string& steps, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"launch", "plan.json", "--local", "--data", data_, "--steps", steps, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::vector<int> workers() const { return processesNaming(cli_.folder().path().string()); }

  Cli cli_;
  std::string data_;
};

TEST_F(Loop, TrainsAPlanAndRemembersTheRun) {
  plan("1x2:cpu@0.5,1x2:cpu@0.25", "13");
  const ProgramResult result = cli_.run(launch("12"));
  ASSERT_EQ(result.exitCode, 0) << result.err;
  const Json job = result.json();
  for (const char* key : {"run", "state", "steps", "losses", "iteration_ms", "predicted_iteration_ms", "tokens_per_s", "peak_bytes", "failed"}) {
    EXPECT_TRUE(job.contains(key)) << key;
  }
  EXPECT_EQ(job["state"], "finished");
  EXPECT_EQ(job["steps"], 12);
  ASSERT_EQ(job["losses"].size(), 12U);
  EXPECT_NEAR(job["losses"][0].get<double>(), std::log(256.0), 0.3) << "an untrained model is as good as guessing";
  EXPECT_LT(job["losses"][11].get<double>(), job["losses"][0].get<double>() - 0.5);
  for (const char* key : {"median", "p5", "p95"}) EXPECT_GT(job["iteration_ms"][key].get<double>(), 0) << key;
  EXPECT_TRUE(job["failed"].is_null());
  const Json plan = *readJsonFile(cli_.folder().path() / "plan.json");
  EXPECT_EQ(job["peak_bytes"].size() + plan["idle_devices"].size(), 4U);

  const std::string run = job["run"];
  EXPECT_EQ(cli_.run({"status", run, "--json"}).json()["losses"], job["losses"]);
  const Json runs = cli_.run({"runs", "--json"}).json()["runs"];
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0]["run"], run);
  EXPECT_EQ(runs[0]["state"], "finished");
  EXPECT_EQ(runs[0]["steps"], 12);
  EXPECT_TRUE(runs[0].contains("started"));
  EXPECT_EQ(cli_.run({"attach", run, "--json"}).json()["losses"], job["losses"]);
  EXPECT_EQ(cli_.run({"logs", run, "--rank", "0"}).exitCode, 0);
  EXPECT_EQ(cli_.run({"logs", run, "--rank", "99"}).exitCode, 2);
  EXPECT_EQ(cli_.run({"status", run.substr(0, 8), "--json"}).json()["run"], run) << "the beginning of an id is enough";
  EXPECT_THAT(cli_.run({"logs", run.substr(0, 8), "--rank", "99"}).err, HasSubstr("run " + run + " has ranks 0 to"));
  EXPECT_THAT(cli_.run({"trace", run.substr(0, 8)}).err, HasSubstr("run " + run + ": has no timeline"));
  EXPECT_THAT(workers(), ::testing::IsEmpty());
}

// public Metis: global batch 100 over 8 GPUs trained 80 (field-faults): a prime batch over three devices loses no sample.
TEST_F(Loop, UniformOnThreeDevicesWithBatchThirteenTrainsWhatOneDeviceTrains) {
  const auto steps = static_cast<std::size_t>(sweep(4, 20));
  plan("1x3:cpu", "13", "uniform");
  const Json three = cli_.run(launch(std::to_string(steps))).json();
  const Json again = cli_.run(launch(std::to_string(steps))).json();
  plan("1x1:cpu", "13", "uniform");
  const Json one = cli_.run(launch(std::to_string(steps))).json();
  ASSERT_EQ(three["losses"].size(), steps);
  EXPECT_EQ(three["losses"], again["losses"]) << "the same plan repeats bit by bit";
  for (std::size_t i = 0; i < steps; ++i) {
    const double expected = one["losses"][i].get<double>();
    EXPECT_NEAR(three["losses"][i].get<double>(), expected, 1e-5 * expected) << "step " << i + 1;
  }
}

TEST_F(Loop, ADetachedJobGoesOnAndIsFollowedWithoutGap) {
  plan("1x2:cpu@0.5", "8");
  const ProgramResult started = cli_.run(launch("16", {"--detach"}));
  ASSERT_EQ(started.exitCode, 0) << started.err;
  const std::string run = started.json()["run"];
  const Json job = cli_.run({"attach", run, "--json"}).json();
  EXPECT_EQ(job["state"], "finished");
  EXPECT_EQ(job["losses"].size(), 16U);
}

// gloo #520, pytorch #97191: a dead peer made the others wait forever; accelerate PR #4139: the reporter was a victim (field-faults).
TEST_F(Loop, AKilledWorkerEndsTheRunAndIsNamed) {
  plan("1x2:cpu@0.5,1x2:cpu@0.5", "8");
  Program follower(cli_.command(launch("100000")), cli_.variables(), cli_.folder().path());
  ASSERT_TRUE(follower.readUntil([](const ProgramResult& r) { return r.err.find("step 1 ") != std::string::npos; })) << follower.soFar().err;
  const auto victim = workerOfRank(cli_.folder().path().string(), 1);
  ASSERT_TRUE(victim);
  ::kill(*victim, SIGKILL);
  const ProgramResult result = follower.finish(std::chrono::seconds(60));
  EXPECT_EQ(result.exitCode, 1) << result.err;
  const Json job = result.json();
  EXPECT_EQ(job["state"], "failed");
  EXPECT_EQ(job["failed"]["rank"], 1);
  EXPECT_THAT(job["failed"]["reason"].get<std::string>(), HasSubstr("SIGKILL"));
  for (const char* key : {"node", "last_step"}) EXPECT_TRUE(job["failed"].contains(key)) << key;
  EXPECT_THAT(workers(), ::testing::IsEmpty());
}

// A node dies; the run goes on from its last checkpoint, and the curve is the one that it would have been.
TEST_F(Loop, AKilledWorkerIsResumedFromTheLastCheckpoint) {
  plan("1x2:cpu@0.5,1x1:cpu@0.5", "8");
  const Json whole = cli_.run(launch("40")).json();
  Program follower(cli_.command(launch("40", {"--checkpoint-every", "4", "--on-failure", "resume"})), cli_.variables(), cli_.folder().path());
  ASSERT_TRUE(follower.readUntil([](const ProgramResult& r) { return r.err.find("checkpoint of step 4") != std::string::npos; })) << follower.soFar().err;
  if (const auto victim = workerOfRank(cli_.folder().path().string(), 1)) ::kill(*victim, SIGKILL);
  const ProgramResult result = follower.finish(std::chrono::seconds(60));
  ASSERT_EQ(result.exitCode, 0) << result.err;
  const Json runs = cli_.run({"runs", "--json"}).json()["runs"];
  ASSERT_EQ(runs.size(), 3U) << result.err;
  EXPECT_EQ(runs[0]["state"], "finished");
  EXPECT_EQ(runs[1]["state"], "failed");
  EXPECT_THAT(result.err, HasSubstr("going on from"));
  const Json job = result.json();
  ASSERT_GE(job["losses"].size(), 2U);
  EXPECT_EQ(job["losses"].back(), whole["losses"].back()) << "the same plan repeats bit by bit, also across a checkpoint";
  EXPECT_THAT(workers(), ::testing::IsEmpty());
}

// The mission: a node dies; it says which, plans again, resumes. Rank 0 and its checkpoints are on the node that lives.
TEST_F(Loop, AfterAKilledWorkerTheRestIsPlannedAgainAndGoesOn) {
  plan("1x2:cpu@0.5,1x1:cpu@0.5", "8");
  const Json whole = cli_.run(launch("40")).json();
  Program follower(cli_.command(launch("40", {"--checkpoint-every", "4", "--on-failure", "replan"})), cli_.variables(), cli_.folder().path());
  ASSERT_TRUE(follower.readUntil([](const ProgramResult& r) { return r.err.find("checkpoint of step 4") != std::string::npos; })) << follower.soFar().err;
  if (const auto victim = workerOfRank(cli_.folder().path().string(), 2)) ::kill(*victim, SIGKILL);
  const ProgramResult result = follower.finish(std::chrono::seconds(90));
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("failed on cpu-1: "));
  EXPECT_THAT(result.err, HasSubstr("planned again without cpu-1"));
  const Json job = result.json();
  EXPECT_EQ(job["peak_bytes"].size(), 2U) << "two devices are left";
  const double last = whole["losses"].back(), resumed = job["losses"].back();
  EXPECT_NEAR(resumed, last, 1e-4 * last);
  EXPECT_THAT(workers(), ::testing::IsEmpty());
}

// A rank that is frozen cannot speak: the one that hears nothing names it, and it is its node that is left out.
TEST_F(Loop, AfterAFrozenWorkerItsNodeIsLeftOut) {
  if (!isFullRun()) GTEST_SKIP() << "takes the deadline of a silent peer, a minute: EVENKEEL_FULL=1";
  plan("1x1:cpu@0.5,1x2:cpu@0.5", "8");
  Program follower(cli_.command(launch("40", {"--checkpoint-every", "4", "--on-failure", "replan"})), cli_.variables(), cli_.folder().path());
  ASSERT_TRUE(follower.readUntil([](const ProgramResult& r) { return r.err.find("checkpoint of step 4") != std::string::npos; })) << follower.soFar().err;
  if (const auto victim = workerOfRank(cli_.folder().path().string(), 2)) ::kill(*victim, SIGSTOP);
  const ProgramResult result = follower.finish(std::chrono::seconds(180));
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("planned again without cpu-1"));
  EXPECT_THAT(workers(), ::testing::IsEmpty());
}

TEST_F(Loop, ACheckpointIsResumedUnderAnotherPlan) {
  plan("1x2:cpu@0.5,1x1:cpu@0.5", "8");
  const std::string saved = (cli_.folder().path() / "saved").string();
  const Json whole = cli_.run(launch("8", {"--checkpoint-every", "5", "--checkpoint-directory", saved, "--checkpoint-keep", "5"})).json();
  plan("1x1:cpu", "8");
  const ProgramResult resumed = cli_.run(launch("8", {"--resume", saved + "/step-0000000005"}));
  ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
  const Json losses = resumed.json()["losses"];
  ASSERT_EQ(losses.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const double expected = whole["losses"][i + 5].get<double>();
    EXPECT_NEAR(losses[i].get<double>(), expected, 1e-5 * expected);
  }
  const ProgramResult evaluated = cli_.run(launch("7", {"--resume", saved + "/step-0000000005", "--validation", data_, "--evaluate-every", "7"}));
  ASSERT_EQ(evaluated.exitCode, 0) << evaluated.err;
  EXPECT_THAT(evaluated.err, ::testing::AllOf(HasSubstr("validation loss"), ::testing::Not(HasSubstr("the training data is not that of the checkpoint"))));
}

TEST_F(Loop, ARehearsalNeedsNoTextAndIsCalledOne) {
  ASSERT_EQ(cli_.run({"plan", "--cluster", "1x2:A100-80-SXM", "--model", "tiny-gpt", "--global-batch", "8", "--planner", "uniform", "--out", "plan.json"}).exitCode, 0);
  const ProgramResult result = cli_.run({"launch", "plan.json", "--local", "--rehearse", "--steps", "3"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_THAT(result.err, ::testing::AllOf(HasSubstr("step 3 of 3  rehearsed"), ::testing::Not(HasSubstr("loss"))));
  EXPECT_THAT(result.out, ::testing::AllOf(HasSubstr("a rehearsal: nothing was trained"), ::testing::Not(HasSubstr("loss"))));
  const Json runs = cli_.run({"runs", "--json"}).json()["runs"];
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0]["rehearsal"], true);
  EXPECT_EQ(cli_.run({"attach", runs[0]["run"].get<std::string>(), "--json"}).json()["rehearsal"], true);
}

// DeepSpeed #1995, #1722: orphans held memory (field-faults).
TEST_F(Loop, StopLeavesNoProcess) {
  plan("1x2:cpu@0.5", "8");
  const ProgramResult started = cli_.run(launch("100000", {"--detach"}));
  ASSERT_EQ(started.exitCode, 0) << started.err;
  EXPECT_FALSE(workers().empty());
  const ProgramResult stopped = cli_.run({"stop", started.json()["run"]});
  EXPECT_EQ(stopped.exitCode, 0) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("nothing is left"));
  EXPECT_THAT(workers(), ::testing::IsEmpty());
  EXPECT_EQ(cli_.run({"status", started.json()["run"], "--json"}).json()["state"], "stopped");
}

TEST_F(Loop, TheFirstInterruptStopsFollowingAndTheSecondStopsTheJob) {
  plan("1x2:cpu@0.5", "8");
  Program follower(cli_.command(launch("100000")), cli_.variables(), cli_.folder().path());
  ASSERT_TRUE(follower.readUntil([](const ProgramResult& r) { return r.err.find("step 1 ") != std::string::npos; })) << follower.soFar().err;
  follower.signal(SIGINT);
  ASSERT_TRUE(follower.readUntil([](const ProgramResult& r) { return r.err.find("the job goes on") != std::string::npos; })) << follower.soFar().err;
  EXPECT_THAT(follower.soFar().err, HasSubstr("evenkeel-cli attach"));
  follower.signal(SIGINT);
  EXPECT_EQ(follower.finish().exitCode, 1);
  EXPECT_THAT(workers(), ::testing::IsEmpty());
}

TEST_F(Loop, APreflightLooksAtTheFolderOfTheCurvesAndMakesNothing) {
  plan("1x2:cpu@0.5", "8");
  const std::string board = (cli_.folder().path() / "new" / "board").string();
  const ProgramResult good = cli_.run(launch("5", {"--preflight", "--tensorboard", board}));
  EXPECT_EQ(good.exitCode, 0) << good.err;
  EXPECT_THAT(good.err, HasSubstr("ok   job        tensorboard"));
  EXPECT_FALSE(std::filesystem::exists(cli_.folder().path() / "new"));
  const ProgramResult bad = cli_.run(launch("5", {"--preflight", "--tensorboard", data_ + "/board"}));
  EXPECT_EQ(bad.exitCode, 1);
  EXPECT_THAT(bad.err, ::testing::AllOf(HasSubstr("FAIL job        tensorboard"), HasSubstr("1 objection against a launch")));
}

TEST_F(Loop, ADryRunPrintsCommandsAndStartsNothing) {
  plan("1x2:cpu@0.5", "8");
  const ProgramResult result = cli_.run(launch("5", {"--dry-run"}));
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("evenkeel-agent"));
  EXPECT_EQ(cli_.run({"runs", "--json"}).json()["runs"].size(), 0U);
  EXPECT_THAT(cli_.run(launch("5", {"--dry-run", "--env", "nowhere:A=B"})).err, HasSubstr("names \"nowhere\", which is no node of the plan's cluster"));
  EXPECT_THAT(cli_.run(launch("5", {"--dry-run", "--validation", "missing.txt", "--evaluate-every", "1"})).err, HasSubstr("missing.txt: no such file"));
}

}  // namespace
}  // namespace evenkeel
