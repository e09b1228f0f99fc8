// SPDX-License-Identifier: GPL-3.0-or-later
// Runs that a real Slurm starts, on nodes that nobody logs in to; the workers only speak the protocol.
#include "tests/launcher/job/job_fixture.h"
#include "tests/support/node_rig.h"
#include "tests/support/slurm_rig.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SlurmRigTest : public JobTest {
 protected:
  void SetUp() override {
    if (const std::string reason = SlurmRig::reasonToSkip(); !reason.empty()) GTEST_SKIP() << reason;
  }
  void build(const std::vector<std::string>& names, const std::string& more = "") {
    rig_ = std::make_unique<NodeRig>(std::vector<std::string>{SlurmRig::kLogin});
    slurm_ = std::make_unique<SlurmRig>(*rig_, names, more);
    ASSERT_TRUE(slurm_->isUp()) << *readFile(slurm_->log());
  }
  void TearDown() override {
    rig_.reset();
    slurm_.reset();
  }
  [[nodiscard]] LaunchRequest byLogin(std::int64_t steps, const Json& fake = Json::object()) const {
    LaunchRequest request = this->request(steps, fake);
    request.local = false;
    request.slurm.emplace();
    request.slurm->login = {.host = NodeRig::address(0), .user = "root", .identity = rig_->identity(), .proxyJump = {}, .knownHosts = rig_->knownHosts()};
    request.timeouts.connect = 8s;
    return request;
  }
  /// A run that waits at step 4 until the gate is opened.
  [[nodiscard]] static Json gateAt(const std::string& gate) { return {{"0", {{"gate_at", {{"step", 4}, {"fifo", gate}}}}}, {"all", Json::object()}}; }
  [[nodiscard]] std::string textOfRun(const std::string& run, const std::string& file) const {
    const auto text = readFile(rig_->home(0) / ".local/share/evenkeel/runs" / run / file);
    return text ? *text : text.error().text();
  }

  std::unique_ptr<NodeRig> rig_;
  std::unique_ptr<SlurmRig> slurm_;
};

TEST_F(SlurmRigTest, ARunIsHandedOverFollowedAcrossACutAndFinished) {
  build({"cpu-0", "cpu-1"});
  const std::string gate = makeFifo("gate");
  Recorder recorder;
  const auto run = launcher().startJob(byLogin(30, gateAt(gate)), recorder);
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_THAT(recorder.logs, Contains(HasSubstr("Slurm has taken the run as job")));
  recorder.reactToStep = [&](const StepRecord& step) {
    if (step.step == 3) rig_->cutConnections(0);
  };
  recorder.reactToConnection = [&](const std::string& text) {
    if (!text.empty()) openGate(gate);
  };
  const auto status = launcher().followJob(*run, recorder);  // another launcher than that which started it
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(status->state, JobState::Finished) << textOfRun(*run, "slurm.log");
  EXPECT_EQ(recorder.stepNumbers(), countTo(30));
  EXPECT_THAT(recorder.states, ::testing::ElementsAre(JobState::Preparing, JobState::Preparing, JobState::Running, JobState::Finished));
  EXPECT_THAT(recorder.connections, Contains(HasSubstr("the login node")));
  const auto log = launcher().logOf(*run, 3);
  EXPECT_TRUE(log) << log.error().text();
  EXPECT_EQ((*readJsonFile(rig_->home(0) / ".local/share/evenkeel/runs" / *run / "node-1/node.json"))["node"], "cpu-1");
  EXPECT_EQ(slurm_->jobs(), 0);
  EXPECT_THAT(rig_->processes(0), IsEmpty());
}

TEST_F(SlurmRigTest, AJobThatWaitsSaysWhyAndCanBeStopped) {
  build({"c1", "c2"});  // none of the plan's names: any two nodes will do
  slurm_->occupy(1);
  Recorder recorder;
  const auto run = launcher().startJob(byLogin(5), recorder);
  ASSERT_TRUE(run) << run.error().text();
  std::stop_source enough;
  recorder.reactToLog = [&](const std::string& text) {
    if (text.find("is pending: ") != std::string::npos) enough.request_stop();
  };
  const auto waiting = launcher().followJob(*run, recorder, enough.get_token());
  ASSERT_TRUE(waiting) << waiting.error().text();
  EXPECT_EQ(waiting->state, JobState::Preparing);
  EXPECT_EQ(launcher().runs()->front().state, JobState::Preparing);
  const auto status = launcher().statusOf(*run);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_THAT(status->queue, ::testing::AllOf(HasSubstr("Slurm job"), HasSubstr("is pending: ")));
  const auto stopped = launcher().stopJob(*run);
  ASSERT_TRUE(stopped) << stopped.error().text();
  EXPECT_TRUE(stopped->complete());
  EXPECT_EQ(launcher().statusOf(*run)->state, JobState::Stopped);
  EXPECT_EQ(slurm_->jobs(), 1) << "the neighbour's";
  EXPECT_EQ(slurm_->jobs("neighbour"), 1);
}

TEST_F(SlurmRigTest, ARunThatIsStoppedLeavesNothingAndItsNeighbourAlone) {
  build({"c1", "c2"});
  Recorder ignored, recorder;
  const auto neighbour = launcher().startJob(byLogin(1'000'000, {{"all", {{"hang_at", 2}}}}), ignored);
  ASSERT_TRUE(neighbour) << neighbour.error().text();
  std::stop_source runs;
  ignored.reactToStep = [&](const StepRecord&) { runs.request_stop(); };
  ASSERT_TRUE(launcher().followJob(*neighbour, ignored, runs.get_token()));
  const std::vector<int> neighbours = rig_->processes(0);
  ASSERT_GE(neighbours.size(), 7U);  // two agents, their four workers, one store; and srun, which names the agent
  for (int round = 0; round < sweep(1, 20); ++round) {
    const auto run = launcher().startJob(byLogin(1'000'000, {{"all", {{"hang_at", 4}}}}), recorder);
    ASSERT_TRUE(run) << run.error().text();
    std::optional<StopReport> stopped;
    std::jthread stopper;
    recorder.reactToStep = [&](const StepRecord& step) {
      if (step.step == 3) stopper = std::jthread([&, run = *run] { stopped = *launcher().stopJob(run); });
    };
    const auto status = launcher().followJob(*run, recorder);
    stopper = {};
    ASSERT_TRUE(status) << status.error().text();
    EXPECT_EQ(status->state, JobState::Stopped) << (status->failed ? status->failed->reason : "") << textOfRun(*run, "node-0/journal.jsonl");
    EXPECT_TRUE(stopped && stopped->complete());
    EXPECT_EQ(slurm_->jobs(), 1);
    EXPECT_THAT(rig_->processes(0), ::testing::UnorderedElementsAreArray(neighbours));
    EXPECT_EQ(launcher().statusOf(*neighbour)->state, JobState::Running);
  }
}

TEST_F(SlurmRigTest, WhatSlurmEndsIsNamed) {
  build({"c1", "c2"});
  const auto endBy = [&](const std::string& line, const Json& fake) {
    Recorder recorder;
    const auto run = launcher().startJob(byLogin(1'000'000, fake), recorder);
    EXPECT_TRUE(run) << run.error().text();
    if (!run) return std::string();
    recorder.reactToStep = [&](const StepRecord& step) {
      if (step.step == 3) rig_->on(0, line);
    };
    const auto status = launcher().followJob(*run, recorder);
    EXPECT_TRUE(status) << status.error().text();
    if (!status) return std::string();
    EXPECT_EQ(status->state, JobState::Failed);
    EXPECT_THAT(rig_->processes(0), IsEmpty());
    return status->failed ? status->failed->reason : std::string();
  };
  const Json hang = {{"all", {{"hang_at", 4}}}};
  for (int round = 0; round < sweep(1, 20); ++round) {
    EXPECT_THAT(endBy("scancel -u root", hang), HasSubstr("Slurm was told to cancel it (CANCELLED)"));
    EXPECT_THAT(endBy("scontrol update nodename=c2 state=down reason=test", hang), HasSubstr("because one of its nodes failed (NODE_FAIL)"));
    rig_->on(0, "scontrol update nodename=c2 state=resume 2>/dev/null; for i in $(seq 100); do [ \"$(sinfo -h -t idle -o %D)\" = 2 ] && exit 0; sleep 0.1; done");
    EXPECT_THAT(endBy("true", {{"2", {{"fail_at", {{"step", 4}, {"reason", "the card is on fire"}, {"cause", "own"}}}}}, {"all", {{"hang_at", 4}}}}),
                HasSubstr("the card is on fire"));
  }
}

TEST_F(SlurmRigTest, ATimeLimitIsNamedAndTheRunGoesOnFromThere) {
  if (!isFullRun()) GTEST_SKIP() << "Slurm's shortest time limit is a minute; run with EVENKEEL_FULL=1";
  build({"c1", "c2"});
  LaunchRequest request = byLogin(1'000'000, {{"all", {{"hang_at", 4}}}});
  request.slurm->options = {{"time", "1"}};
  Recorder recorder;
  const auto run = launcher().startJob(request, recorder);
  ASSERT_TRUE(run) << run.error().text();
  const auto status = launcher().followJob(*run, recorder);
  ASSERT_TRUE(status && status->failed);
  EXPECT_THAT(status->failed->reason, HasSubstr("Slurm ended it at its time limit (TIMEOUT, 1:00)"));
  EXPECT_EQ(launcher().requestOf(*run)->slurm, request.slurm) << "what goes on is handed over again as it was";
}

TEST_F(SlurmRigTest, WhatSlurmRefusesIsSaidBeforeAnythingIsCopied) {
  build({"cpu-0", "c2"});
  const auto refusal = [&](const std::function<void(LaunchRequest&)>& change) {
    LaunchRequest request = byLogin(5);
    change(request);
    Recorder recorder;
    const auto run = launcher().startJob(request, recorder);
    EXPECT_FALSE(run);
    EXPECT_THAT(recorder.copied, IsEmpty());
    return run ? std::string() : run.error().text();
  };
  EXPECT_THAT(refusal([](LaunchRequest&) {}), HasSubstr("slurm: knows no node cpu-1, but others of the plan"));
  const auto rename = [](LaunchRequest& request) {
    for (std::size_t i = 0; i < 2; ++i) request.plan.cluster.nodes[i].name = "n" + std::to_string(i);
  };
  EXPECT_THAT(refusal([&](LaunchRequest& request) {
                rename(request);
                request.slurm->options = {{"partition", "nowhere"}};
              }),
              HasSubstr("slurm: sbatch refuses the job: "));
  EXPECT_THAT(refusal([&](LaunchRequest& request) {
                rename(request);
                request.slurm->options = {{"nodes", "1"}};
              }),
              HasSubstr("--slurm-option nodes"));
  EXPECT_THAT(refusal([&](LaunchRequest& request) {
                rename(request);
                request.slurm->options = {{"cpus-per-task", "99"}};
              }),
              HasSubstr("sbatch refuses the job: Requested node configuration is not available"));
  EXPECT_EQ(slurm_->jobs(), 0);
}

}  // namespace
}  // namespace evenkeel
