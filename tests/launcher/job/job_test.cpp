// SPDX-License-Identifier: GPL-3.0-or-later
// Whole jobs on this machine: real agents, workers that only speak the protocol.
#include <signal.h>
#include <sys/utsname.h>

#include <sstream>

#include "launcher/ssh/fake_host.h"
#include "launcher/ssh/local_host.h"
#include "tests/launcher/job/job_fixture.h"

namespace evenkeel {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Passes commands on to this machine, and breaks the connection after some lines of a journal.
class BreakingHost final : public Host {
 public:
  BreakingHost(std::string name, int lines) : host_(std::move(name)), lines_(lines) {}
  [[nodiscard]] const std::string& name() const override { return host_.name(); }
  [[nodiscard]] Result<Ending> execute(const Command& command, std::stop_token stop) override {
    if (command.argv.size() < 2 || command.argv[1] != "tail") return host_.execute(command, std::move(stop));
    Command watched = command;
    std::stop_source breaks;
    const std::stop_callback forward(stop, [&] { breaks.request_stop(); });
    watched.onOutput = [&](std::string_view piece) {
      for (const char& byte : piece) {
        if (lines_ > 0) command.onOutput({&byte, 1});
        if (byte == '\n' && --lines_ == 0) breaks.request_stop();
      }
    };
    auto ending = host_.execute(watched, breaks.get_token());
    if (lines_ <= 0) return unreachable(name(), "the connection is broken");
    return ending;
  }

 private:
  LocalHost host_;
  int lines_;
};

TEST_F(JobTest, RunsFromPreflightToItsEnd) {
  Launcher launcher = this->launcher();
  Recorder recorder;
  LaunchRequest request = this->request(20);
  const auto run = launcher.startJob(request, recorder);
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_THAT(recorder.rows, Not(Contains(::testing::Field(&PreflightRow::passed, false))));
  EXPECT_EQ(launcher.runs()->front().run, *run);
  const auto status = launcher.followJob(*run, recorder);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(status->state, JobState::Finished);
  EXPECT_EQ(status->steps, 20);
  EXPECT_EQ(recorder.stepNumbers(), countTo(20));
  EXPECT_EQ(recorder.steps[1].loss, 3.0);
  EXPECT_EQ(recorder.steps[1].iterationMs, 13.0);  // rank 3 is the slowest
  EXPECT_EQ(status->iterationMs->median, 13.0);
  EXPECT_EQ(status->peakBytes.at(3), 1003);
  EXPECT_FALSE(status->failed);
  EXPECT_THAT(recorder.states, ElementsAre(JobState::Preparing, JobState::Running, JobState::Running, JobState::Finished));
  EXPECT_THAT(processes(*run), IsEmpty());
  struct stat mode {};
  ::stat(runDirectory(*run, 0).c_str(), &mode);
  EXPECT_EQ(mode.st_mode & 0777U, 0700U);
}

TEST_F(JobTest, GivesWorkersTheEnvironmentOfTheirNodeAndRunsTheEndCommandOnce) {
  LaunchRequest request = this->request(3);
  const std::filesystem::path told = path() / "told";
  request.run.environment = {{"EVENKEEL_TEST_VARIABLE", "all"}};
  request.run.nodeEnvironment["cpu-1"] = {{"EVENKEEL_TEST_VARIABLE", "own"}};
  request.run.endCommand = "echo \"$EVENKEEL_STATE $EVENKEEL_STEPS ${EVENKEEL_CAUSE-none}\" >> \"" + told.string() + "\"";
  Launcher launcher = this->launcher();
  Recorder recorder;
  const auto run = launcher.startJob(request, recorder);
  ASSERT_TRUE(run) << run.error().text();
  ASSERT_TRUE(launcher.followJob(*run, recorder));
  ASSERT_TRUE(launcher.followJob(*run, recorder));
  EXPECT_EQ(*readFile(told), "finished 3 none\n");
  std::map<std::int64_t, std::string> mine;  // by rank
  for (const std::size_t node : {std::size_t{0}, std::size_t{1}}) {
    std::istringstream journal(*readFile(runDirectory(*run, node) / "journal.jsonl"));
    for (std::string line; std::getline(journal, line);) {
      const Json record = Json::parse(line);
      if (record["event"] == "ready") mine[record["rank"]] = record["mine"];
      EXPECT_EQ(line.find(told.string()), std::string::npos) << "the end command is the workstation's business";
    }
  }
  EXPECT_EQ(mine, (std::map<std::int64_t, std::string>{{0, "all"}, {1, "all"}, {2, "own"}, {3, "own"}}));
  request.run.nodeEnvironment["nobody"] = {{"A", "b"}};
  EXPECT_THAT(launcher.startJob(request, recorder).error().text(), HasSubstr("\"nobody\", which is no node"));
}

TEST_F(JobTest, IsToldOverAgainWhenItHasEnded) {
  Recorder first, second;
  const auto run = launcher().startJob(request(10), first);
  ASSERT_TRUE(run) << run.error().text();
  const auto status = launcher().followJob(*run, first);
  const auto again = launcher().followJob(*run, second);
  ASSERT_TRUE(status && again);
  EXPECT_EQ(*again, *status);
  EXPECT_EQ(second.steps, first.steps);
  EXPECT_EQ(*launcher().statusOf(*run), *status);
}

// tensorboard #3732: steps that zig-zag or are dropped after a restart.
TEST_F(JobTest, GoesOnWithoutTheOneWhoFollowsAndIsTakenUpWithoutAGap) {
  const std::string gate = makeFifo("gate");
  Launcher launcher = this->launcher();
  Recorder first, second;
  std::stop_source stop;
  first.reactToStep = [&](const StepRecord& step) {
    if (step.step == 3) stop.request_stop();
  };
  const auto run = launcher.startJob(request(12, {{"1", {{"gate_at", {{"step", 6}, {"fifo", gate}}}}}}), first);
  ASSERT_TRUE(run) << run.error().text();
  const auto left = launcher.followJob(*run, first, stop.get_token());
  ASSERT_TRUE(left);
  EXPECT_EQ(left->state, JobState::Running);
  EXPECT_EQ(launcher.statusOf(*run)->state, JobState::Running);
  openGate(gate);
  const auto status = launcher.followJob(*run, second);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(status->state, JobState::Finished);
  EXPECT_EQ(second.stepNumbers(), countTo(12));
}

TEST_F(JobTest, IsKnownToBeFinishedWithoutAnybodyFollowing) {
  const std::string gate = makeFifo("gate");
  Launcher launcher = this->launcher();
  Recorder recorder;
  const auto run = launcher.startJob(request(4, {{"0", {{"gate_at", {{"step", 2}, {"fifo", gate}}}}}}), recorder);
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_EQ(launcher.statusOf(*run)->state, JobState::Running);
  const std::vector<int> agents{agentPid(*run, 0), agentPid(*run, 1)};
  openGate(gate);
  awaitEnd(agents);
  const auto status = launcher.statusOf(*run);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, JobState::Finished);
  EXPECT_EQ(status->steps, 4);
}

TEST_F(JobTest, CountsEveryRecordOnceWhenConnectionsBreak) {
  // every connection to a node brings a few lines and then breaks
  const Connector breaking = [](const SshTarget&, const std::string& name, std::chrono::milliseconds,
                                std::stop_token) -> Result<std::unique_ptr<Host>> {
    return std::unique_ptr<Host>(std::make_unique<BreakingHost>(name, 9));
  };
  Recorder recorder;
  const auto run = launcher().startJob(request(20), recorder);
  ASSERT_TRUE(run) << run.error().text();
  Launcher follower = launcher(breaking);
  const auto status = follower.followJob(*run, recorder);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(status->state, JobState::Finished);
  EXPECT_EQ(recorder.stepNumbers(), countTo(20));
  EXPECT_THAT(recorder.connections, Contains("cpu-0: cpu-0: the connection is broken"));
  EXPECT_THAT(recorder.connections, Contains("cpu-0: "));  // and back
}

TEST_F(JobTest, NamesTheRankThatWasKilled) {
  Launcher launcher = this->launcher();
  Recorder recorder;
  const auto run = launcher.startJob(request(1000, {{"all", {{"hang_at", 5}}}}), recorder);
  ASSERT_TRUE(run) << run.error().text();
  recorder.reactToStep = [&](const StepRecord& step) {
    if (step.step == 4) ::kill(pidOfRank(*run, 2), SIGKILL);
  };
  const auto status = launcher.followJob(*run, recorder);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(status->state, JobState::Failed);
  EXPECT_EQ(status->failed, (JobFailure{.rank = 2, .node = "cpu-1", .reason = "killed by SIGKILL", .lastStep = 4}));
  EXPECT_THAT(recorder.failures, ElementsAre(*status->failed));
  EXPECT_EQ(status->steps, 4);
  EXPECT_THAT(processes(*run), IsEmpty());
}

TEST_F(JobTest, NamesTheCulpritOnOneNodeAfterAVictimOnAnother) {
  const std::string gate = makeFifo("gate");
  Launcher launcher = this->launcher();
  Recorder recorder;
  const Json fake{{"0", {{"fail_at", {{"step", 3}, {"reason", "rank 3 fell silent"}, {"cause", "peer"}}}}},
                  {"1", {{"hang_at", 3}}},
                  {"2", {{"hang_at", 3}}},
                  {"3", {{"gate_at", {{"step", 3}, {"fifo", gate}}}, {"signal_at", {{"step", 3}, {"signal", SIGBUS}}}}}};
  const auto run = launcher.startJob(request(1000, fake), recorder);
  ASSERT_TRUE(run) << run.error().text();
  recorder.reactToLog = [&](const std::string& text) {
    if (text == "failed: rank 3 fell silent") openGate(gate);
  };
  const auto status = launcher.followJob(*run, recorder);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(status->failed, (JobFailure{.rank = 3, .node = "cpu-1", .reason = "killed by SIGBUS", .lastStep = 2}));
  EXPECT_THAT(processes(*run), IsEmpty());
}

TEST_F(JobTest, NamesTheNodeWhoseAgentWasKilled) {
  Launcher launcher = this->launcher();
  Recorder recorder;
  const auto run = launcher.startJob(request(1000, {{"all", {{"hang_at", 5}}}}), recorder);
  ASSERT_TRUE(run) << run.error().text();
  recorder.reactToStep = [&](const StepRecord& step) {
    if (step.step == 4) ::kill(agentPid(*run, 1), SIGKILL);
  };
  const auto status = launcher.followJob(*run, recorder);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(status->state, JobState::Failed);
  EXPECT_EQ(status->failed->node, "cpu-1");
  EXPECT_THAT(status->failed->reason, HasSubstr("evenkeel-agent is gone"));
  awaitEnd(processes(*run));
}

TEST_F(JobTest, StopsOnAllNodes) {
  Launcher launcher = this->launcher();
  Recorder recorder;
  const auto run = launcher.startJob(request(1000, {{"all", {{"hang_at", 5}}}}), recorder);
  ASSERT_TRUE(run) << run.error().text();
  recorder.reactToStep = [&](const StepRecord& step) {
    if (step.step != 4) return;
    Launcher another = this->launcher();  // as another window or terminal would
    const auto report = another.stopJob(*run);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_TRUE(report->complete());
  };
  const auto status = launcher.followJob(*run, recorder);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(status->state, JobState::Stopped);
  EXPECT_FALSE(status->failed);
  EXPECT_THAT(processes(*run), IsEmpty());
  EXPECT_TRUE(launcher.stopJob(*run)->complete());  // again: no error
  EXPECT_EQ(launcher.statusOf(*run)->state, JobState::Stopped);
}

TEST_F(JobTest, RunsBesideAnother) {
  const std::string gate = makeFifo("gate");
  Launcher launcher = this->launcher();
  Recorder first, second;
  const auto one = launcher.startJob(request(1000, {{"all", {{"hang_at", 5}}}}), first);
  const auto two = launcher.startJob(request(8, {{"0", {{"gate_at", {{"step", 4}, {"fifo", gate}}}}}}), second);
  ASSERT_TRUE(one && two);
  ASSERT_TRUE(launcher.stopJob(*one)->complete());
  openGate(gate);
  EXPECT_EQ(launcher.followJob(*two, second)->state, JobState::Finished);
  EXPECT_EQ(second.stepNumbers(), countTo(8));
  EXPECT_EQ(launcher.runs()->size(), 2U);
}

TEST_F(JobTest, ShowsTheLogOfARank) {
  Launcher launcher = this->launcher();
  Recorder recorder;
  const auto run = launcher.startJob(request(1, {{"2", {{"log_bytes", 3000}}}}), recorder);
  ASSERT_TRUE(run) << run.error().text();
  ASSERT_TRUE(launcher.followJob(*run, recorder));
  EXPECT_EQ(launcher.logOf(*run, 2)->size(), 3000U);
  EXPECT_EQ(launcher.logOf(*run, 2, 100)->size(), 100U);
  EXPECT_THAT(*launcher.logOf(*run, 1), IsEmpty());
  EXPECT_THAT(launcher.logOf(*run, 4).error().text(), HasSubstr("has no rank 4: its ranks are 0 to 3"));
  EXPECT_EQ(*launcher.worldSizeOf(*run), 4);
}

TEST_F(JobTest, IsRefusedWithEveryReasonAtOnce) {
  LaunchRequest request = this->request(0);
  request.run.train = {path() / "missing.txt"};
  request.programs = path();
  request.plan.pipelines[0].stages[1].units.last = 8;
  Recorder recorder;
  const auto run = launcher().startJob(request, recorder);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Error::Code::InvalidInput);
  EXPECT_THAT(run.error().text(), AllOf(HasSubstr("plan: "), HasSubstr("missing.txt: no such file"),
                                        HasSubstr("evenkeel-agent: no such program"), HasSubstr("--steps")));
  EXPECT_THAT(*launcher().runs(), IsEmpty());
}

// DeepSpeed #3669, #2612 (field-faults): what was meant for other machines must not train here in silence.
TEST_F(JobTest, IsRefusedWhenSeveralNodesNameNoHost) {
  LaunchRequest request = this->request(1);
  request.local = false;
  for (Node& node : request.plan.cluster.nodes) node.ssh = {};
  Recorder recorder;
  const auto run = launcher().startJob(request, recorder);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Error::Code::InvalidInput);
  EXPECT_THAT(run.error().text(), AllOf(HasSubstr("cpu-0, cpu-1 name no ssh host"), HasSubstr("--local")));
}

TEST_F(JobTest, IsRefusedWhenTheWorkerCannotExecuteThePlan) {
  LaunchRequest request = this->request(5);
  request.plan.training.attention = AttentionKernel::Fused;
  Recorder recorder;
  const auto run = launcher().startJob(request, recorder);
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().text(),
              AllOf(HasSubstr("cpu-0: features: training: the runtime has no fused attention kernel yet"), HasSubstr("cpu-1: features")));
}

TEST_F(JobTest, IsRefusedWhenAProgramLacksALibrary) {
  const auto programs = path() / "programs";
  std::filesystem::create_directory(programs);
  std::filesystem::create_symlink(EVENKEEL_TEST_PROGRAMS "/evenkeel-agent", programs / "evenkeel-agent");
  std::ofstream(programs / "evenkeel-worker") << "#!/bin/sh\necho 'evenkeel-worker: error while loading shared libraries: "
                                                 "libtorch.so: cannot open shared object file' >&2; exit 127\n";
  std::filesystem::permissions(programs / "evenkeel-worker", std::filesystem::perms::owner_all);
  LaunchRequest request = this->request(5);
  request.programs = programs;
  Recorder recorder;
  const auto rows = launcher().preflight(request, recorder);
  ASSERT_TRUE(rows);
  EXPECT_THAT(*rows,
              Contains(AllOf(::testing::Field(&PreflightRow::node, "cpu-1"), ::testing::Field(&PreflightRow::passed, false),
                             ::testing::Field(&PreflightRow::detail, HasSubstr("lacks the library libtorch.so")))));
  EXPECT_FALSE(std::filesystem::exists(path() / "data" / "evenkeel" / "runs"));
}

// DeepSpeed #4907: the real reason for each host, all hosts at once.
TEST_F(JobTest, IsRefusedWithTheReasonOfEachNodeThatCannotBeReached) {
  const Connector connect = [](const SshTarget& target, const std::string& name, std::chrono::milliseconds,
                               std::stop_token) -> Result<std::unique_ptr<Host>> {
    return unreachable(name, target.host + " port 22: Connection refused");
  };
  LaunchRequest request = this->request(5);
  request.local = false;
  request.plan.cluster.nodes[0].ssh.host = "alpha";
  request.plan.cluster.nodes[1].ssh.host = "beta";
  Recorder recorder;
  const auto run = launcher(connect).startJob(request, recorder);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Error::Code::Unreachable);
  EXPECT_THAT(run.error().text(), AllOf(HasSubstr("cpu-0: reachable: alpha port 22: Connection refused"),
                                        HasSubstr("cpu-1: reachable: beta port 22: Connection refused")));
}

/// Answers a probe like a machine with the given identity, everything else like a healthy node.
std::unique_ptr<Host> fakeNode(const std::string& name, const std::string& machine) {
  return std::make_unique<FakeHost>(name, [machine](const Command& command, std::stop_token) -> Result<Ending> {
    if (command.argv.size() == 3) {
      utsname here{};
      ::uname(&here);
      return FakeHost::reply(command, std::string("data=/d\ncache=/c\narchitecture=") + here.machine +
                                          "\nlibc=glibc 2.36\nmachine=" + machine +
                                          "\nwritable=yes\nfree=100000000\nsha256sum=yes\n");
    }
    return FakeHost::reply(command, "");
  });
}

// vllm #7074: loopback advertised to other machines. pytorch #150532: an address replaced by a name that others cannot resolve.
TEST_F(JobTest, IsRefusedWithAnAddressThatOtherMachinesCannotUse) {
  const Connector connect = [](const SshTarget& target, const std::string& name, std::chrono::milliseconds,
                               std::stop_token) -> Result<std::unique_ptr<Host>> { return fakeNode(name, target.host); };
  LaunchRequest request = this->request(5);
  request.local = false;
  for (const int node : {0, 1})
    request.plan.cluster.nodes[static_cast<std::size_t>(node)].ssh.host = "host" + std::to_string(node);
  request.plan.cluster.nodes[0].trainAddress = "127.0.0.1";
  request.plan.cluster.nodes[1].trainAddress = "beta.local";
  Recorder recorder;
  const auto rows = launcher(connect).preflight(request, recorder);
  ASSERT_TRUE(rows);
  EXPECT_THAT(*rows, Contains(AllOf(::testing::Field(&PreflightRow::node, "cpu-0"),
                                    ::testing::Field(&PreflightRow::detail, HasSubstr("is loopback")))));
  EXPECT_THAT(*rows, Contains(AllOf(::testing::Field(&PreflightRow::node, "cpu-1"),
                                    ::testing::Field(&PreflightRow::detail, HasSubstr("no numeric address")))));
  EXPECT_THAT(*rows, Contains(AllOf(::testing::Field(&PreflightRow::check, "programs"),
                                    ::testing::Field(&PreflightRow::detail, HasSubstr("to be copied")))));
  request.plan.cluster.nodes[0].trainAddress = "10.0.0.1";
  request.plan.cluster.nodes[1].trainAddress = "fd00::2";
  EXPECT_THAT(*launcher(connect).preflight(request, recorder), Not(Contains(::testing::Field(&PreflightRow::passed, false))));
}

// Ctrl-C while a node was looked at used to be an objection against that node.
TEST_F(JobTest, ThatIsStoppedWhileItIsExaminedHasNoObjection) {
  std::stop_source stop;
  const Connector interrupted = [&](const SshTarget&, const std::string& name, std::chrono::milliseconds, std::stop_token) -> Result<std::unique_ptr<Host>> {
    stop.request_stop();
    return Error{Error::Code::Cancelled, name, "was stopped", ""};
  };
  Recorder recorder;
  const auto rows = launcher(interrupted).preflight(request(5), recorder, stop.get_token());
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, Error::Code::Cancelled);
  EXPECT_THAT(rows.error().text(), HasSubstr("preflight: was stopped"));
  EXPECT_THAT(recorder.rows, Not(Contains(::testing::Field(&PreflightRow::passed, false))));
  const auto started = launcher(interrupted).startJob(request(5), recorder, stop.get_token());
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Error::Code::Cancelled);
  EXPECT_THAT(recorder.rows, Not(Contains(::testing::Field(&PreflightRow::passed, false))));
  EXPECT_THAT(*launcher().runs(), IsEmpty());
}

TEST_F(JobTest, LeavesNothingBehindWhenItCannotBeStarted) {
  const auto programs = path() / "programs";
  std::filesystem::create_directory(programs);
  std::filesystem::create_symlink(EVENKEEL_TEST_PROGRAMS "/evenkeel-agent", programs / "evenkeel-agent");
  std::ofstream(programs / "evenkeel-worker") << "#!/bin/sh\n[ \"$1\" = --features ] && exec " EVENKEEL_TEST_PROGRAMS
                                                 "/evenkeel-worker --features\necho 'no port is free' >&2\nexit 1\n";
  std::filesystem::permissions(programs / "evenkeel-worker", std::filesystem::perms::owner_all);
  LaunchRequest request = this->request(5);
  request.programs = programs;
  Recorder recorder;
  Launcher launcher = this->launcher();
  const auto run = launcher.startJob(request, recorder);
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().text(), HasSubstr("the rendezvous store"));
  EXPECT_THAT(run.error().text(), HasSubstr("no port is free"));
  const auto rows = launcher.runs();
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(rows->front().state, JobState::Failed);
  EXPECT_EQ(launcher.statusOf(rows->front().run)->failed->node, "cpu-0");
  EXPECT_THAT(processes(rows->front().run), IsEmpty());
}

TEST_F(JobTest, IsNotTakenForDeadWhenNoNodeCanBeAsked) {
  Recorder recorder;
  LaunchRequest request = this->request(1000, {{"all", {{"hang_at", 5}}}});
  request.timeouts.reconnect = 100ms;
  const auto run = launcher().startJob(request, recorder);
  ASSERT_TRUE(run) << run.error().text();
  const Connector offline = [](const SshTarget&, const std::string& name, std::chrono::milliseconds,
                               std::stop_token) -> Result<std::unique_ptr<Host>> { return unreachable(name, "no route"); };
  Launcher launcher = this->launcher(offline);
  const auto status = launcher.followJob(*run, recorder);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Error::Code::Unreachable);
  EXPECT_THAT(status.error().text(), AllOf(HasSubstr("cpu-0: no route"), HasSubstr("attach again later")));
  EXPECT_EQ(launcher.statusOf(*run)->state, JobState::Running);
  const auto report = launcher.stopJob(*run);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->complete());
  EXPECT_THAT(report->nodes[1].problem, HasSubstr("no route"));
}

TEST_F(JobTest, SuspectsTheNodeThatFellSilentWhenOthersMissIt) {
  Recorder recorder;
  LaunchRequest request = this->request(
      1000,
      {{"0", {{"fail_at", {{"step", 3}, {"reason", "rank 2 fell silent"}, {"cause", "peer"}}}}}, {"all", {{"hang_at", 3}}}});
  request.timeouts.reconnect = 100ms;
  const auto run = launcher().startJob(request, recorder);
  ASSERT_TRUE(run) << run.error().text();
  const Connector halfOffline = [](const SshTarget& target, const std::string& name, std::chrono::milliseconds limit,
                                   std::stop_token) -> Result<std::unique_ptr<Host>> {
    if (name == "cpu-1") return unreachable(name, "no route");
    return connectTo(target, name, limit);
  };
  Launcher launcher = this->launcher(halfOffline);
  const auto status = launcher.followJob(*run, recorder);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(status->state, JobState::Failed);
  EXPECT_EQ(status->failed->node, "cpu-1");
  EXPECT_THAT(status->failed->reason, HasSubstr("does not answer: no route"));
  EXPECT_TRUE(this->launcher().stopJob(*run)->complete());
}

TEST_F(JobTest, ThatNobodyKnowsIsInvalidInput) {
  Launcher launcher = this->launcher();
  Recorder recorder;
  EXPECT_EQ(launcher.followJob("no-such-run", recorder).error().code, Error::Code::InvalidInput);
  EXPECT_EQ(launcher.statusOf("no-such-run").error().code, Error::Code::InvalidInput);
  EXPECT_EQ(launcher.stopJob("no-such-run").error().code, Error::Code::InvalidInput);
}

TEST_F(JobTest, ShowsItsCommandsWithoutRunningThem) {
  LaunchRequest request = this->request(5);
  const Connector nobody = [](const SshTarget&, const std::string& name, std::chrono::milliseconds,
                              std::stop_token) -> Result<std::unique_ptr<Host>> {
    ADD_FAILURE() << "connected to " << name;
    return unreachable(name, "");
  };
  const auto here = launcher(nobody).dryRun(request);
  ASSERT_TRUE(here);
  EXPECT_THAT(*here, Contains(HasSubstr("/evenkeel-agent run --dir \"${XDG_DATA_HOME:-$HOME/.local/share}\"/evenkeel/runs/")));
  request.local = false;
  request.plan.cluster.nodes[1].ssh = {.host = "10.0.0.7", .port = 2222, .user = "me", .identity = "/keys/my key"};
  const auto there = launcher(nobody).dryRun(request);
  ASSERT_TRUE(there);
  EXPECT_THAT(*there, Contains(HasSubstr("ssh -p 2222 -i '/keys/my key' me@10.0.0.7 '")));
  EXPECT_THAT(*there, Contains(HasSubstr("rank 3 on cpu-1/1: RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 NODE_RANK=1")));
}

}  // namespace
}  // namespace evenkeel
