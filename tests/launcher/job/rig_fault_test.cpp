// SPDX-License-Identifier: GPL-3.0-or-later
// Every fault of the rig, with workers that only speak the protocol: the end is bounded, has the right name, leaves nothing of
// the run on any node, and does not touch the neighbour's run. EVENKEEL_FULL: each 20 times.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tests/launcher/job/job_fixture.h"
#include "tests/support/node_rig.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RigFaultTest : public JobTest {
 protected:
  void SetUp() override {
    if (const std::string reason = NodeRig::reasonToSkip(); !reason.empty()) GTEST_SKIP() << reason;
  }

  void buildWithoutNeighbour(const NodeRig::Options& options = {}) {
    rig_ = std::make_unique<NodeRig>(std::vector<std::string>{"n0", "n1"}, options);
  }
  void build(const NodeRig::Options& options = {}) {
    buildWithoutNeighbour(options);
    Launcher launcher = this->launcher();
    Recorder recorder;
    auto started = launcher.startJob(remote(1'000'000, {{"all", {{"hang_at", 2}}}}), recorder);
    ASSERT_TRUE(started) << started.error().text();
    neighbour_ = *started;
    neighbours_ = rig_->processes(0);
    const auto more = rig_->processes(1);
    neighbours_.insert(neighbours_.end(), more.begin(), more.end());
    ASSERT_GE(neighbours_.size(), 6U);  // two agents, four workers; the store
  }
  void TearDown() override { rig_.reset(); }

  [[nodiscard]] LaunchRequest remote(std::int64_t steps, const Json& fake = Json::object()) const {
    LaunchRequest request = this->request(steps, fake);
    request.local = false;
    for (std::size_t i = 0; i < rig_->size(); ++i)
      request.plan.cluster.nodes[i].ssh = {.host = NodeRig::address(i),
                                           .user = "root",
                                           .identity = rig_->identity(),
                                           .proxyJump = {},
                                           .knownHosts = rig_->knownHosts()};
    request.timeouts.connect = 4s;
    request.timeouts.reconnect = 6s;
    request.timeouts.command = 20s;
    request.timeouts.stop = 20s;
    return request;
  }
  /// Nothing but the neighbour's processes, and all of those, and they do what they did.
  void expectOnlyTheNeighbour() {
    std::vector<int> all;
    const auto limit = std::chrono::steady_clock::now() + 10s;  // an agent that has written its last record is about to go
    do {
      all = rig_->processes(0);
      const auto more = rig_->processes(1);
      all.insert(all.end(), more.begin(), more.end());
    } while (all.size() > neighbours_.size() && std::chrono::steady_clock::now() < limit && ::poll(nullptr, 0, 20) == 0);
    EXPECT_THAT(all, ::testing::UnorderedElementsAreArray(neighbours_));
    EXPECT_EQ(launcher().statusOf(neighbour_)->state, JobState::Running);
  }
  /// Starts a run that must be refused; the Error's text.
  std::string refusal() {
    Recorder recorder;
    const auto begin = std::chrono::steady_clock::now();
    const auto run = launcher().startJob(remote(5), recorder);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
    EXPECT_FALSE(run);
    return run ? std::string() : run.error().text();
  }
  /// Starts a run, follows it to its end; `during` is called once, after step 3.
  Result<JobStatus> follow(std::int64_t steps, const Json& fake, Recorder& recorder, const std::function<void()>& during) {
    Launcher launcher = this->launcher();
    const auto run = launcher.startJob(remote(steps, fake), recorder);
    if (!run) return run.error();
    run_ = *run;
    recorder.reactToStep = [during](const StepRecord& step) {
      if (step.step == 3) during();
    };
    return launcher.followJob(*run, recorder);
  }
  /// One round of a fault; with EVENKEEL_FULL 20, and how long they took.
  static void rounds(const std::function<void(int round)>& play) {
    const int count = sweep(1, 20);
    double slowest = 0, sum = 0;
    for (int round = 0; round < count && !HasFailure(); ++round) {
      const auto begin = std::chrono::steady_clock::now();
      play(round);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      slowest = std::max(slowest, seconds);
      sum += seconds;
    }
    if (!isFullRun()) return;
    std::printf("[  ROUNDS  ] %s: %d, %.1f s each, the slowest %.1f s\n", ::testing::UnitTest::GetInstance()->current_test_info()->name(), count,
                sum / count, slowest);
  }
  static Json gateAt(const std::string& gate, const char* rank = "0") {
    return {{rank, {{"gate_at", {{"step", 4}, {"fifo", gate}}}}}};
  }

  std::unique_ptr<NodeRig> rig_;
  std::string neighbour_, run_;
  std::vector<int> neighbours_;
};

TEST_F(RigFaultTest, ARefusedPortAndAnUnpluggedNodeAreNamed) {
  build();
  rounds([&](int) {
    rig_->refuse(1, true);
    EXPECT_THAT(refusal(),
                AllOf(HasSubstr("cpu-1: reachable: 10.77.0.12 port 22: Connection refused"), HasSubstr("does sshd run there")));
    rig_->refuse(1, false);
    rig_->unplug(1, true);
    EXPECT_THAT(refusal(), AllOf(HasSubstr("cpu-1: reachable: 10.77.0.12 port 22"),
                                 AnyOf(HasSubstr("does not answer"), HasSubstr("No route to host"))));
    rig_->unplug(1, false);
    expectOnlyTheNeighbour();
  });
}

TEST_F(RigFaultTest, AFrozenNodeIsNamedAtTheStart) {
  build();
  rounds([&](int) {
    rig_->freeze(1, true);
    EXPECT_THAT(refusal(), AllOf(HasSubstr("cpu-1: reachable: 10.77.0.12 port 22"), HasSubstr("fell silent")));
    rig_->freeze(1, false);
    expectOnlyTheNeighbour();
  });
}

TEST_F(RigFaultTest, ANodeThatIsLostInTheMiddleIsNamedAndCanBeStoppedWhenItIsBack) {
  build();
  rounds([&](int round) {
    const std::string gate = makeFifo("lost" + std::to_string(round));
    const Json victim{{"gate_at", {{"step", 4}, {"fifo", gate}}},
                      {"fail_at", {{"step", 4}, {"reason", "rank 2 (cpu-1/0) did not answer"}, {"cause", "peer"}}}};
    Recorder recorder;
    const auto status = follow(1'000, {{"0", victim}, {"all", {{"hang_at", 4}}}}, recorder, [&] {
      rig_->cutConnections(1);  // first, so that it is noticed at once; what is noticed by silence alone is the next test's
      rig_->unplug(1, true);
      openGate(gate);
    });
    ASSERT_TRUE(status) << status.error().text();
    ASSERT_TRUE(status->failed);
    EXPECT_EQ(status->failed->node, "cpu-1");
    EXPECT_THAT(status->failed->reason, HasSubstr("does not answer"));
    rig_->unplug(1, false);
    const auto stopped = launcher().stopJob(run_);
    ASSERT_TRUE(stopped) << stopped.error().text();
    EXPECT_TRUE(stopped->complete());
    expectOnlyTheNeighbour();
  });
}

TEST_F(RigFaultTest, ANodeThatFreezesInTheMiddleIsNamedAndCanBeStoppedWhenItGoesOn) {
  build();
  rounds([&](int round) {
    const std::string gate = makeFifo("frozen" + std::to_string(round));
    const Json victim{{"gate_at", {{"step", 4}, {"fifo", gate}}},
                      {"fail_at", {{"step", 4}, {"reason", "rank 2 (cpu-1/0) did not answer"}, {"cause", "peer"}}}};
    Recorder recorder;
    const auto status = follow(1'000, {{"0", victim}, {"all", {{"hang_at", 4}}}}, recorder, [&] {
      rig_->freeze(1, true);
      openGate(gate);
    });
    rig_->freeze(1, false);
    ASSERT_TRUE(status) << status.error().text();
    ASSERT_TRUE(status->failed);
    EXPECT_EQ(status->failed->node, "cpu-1");
    const auto stopped = launcher().stopJob(run_);
    ASSERT_TRUE(stopped) << stopped.error().text();
    EXPECT_TRUE(stopped->complete());
    expectOnlyTheNeighbour();
  });
}

TEST_F(RigFaultTest, AProcessThatIsKilledIsNamedWhicheverItIs) {
  build();
  const auto killed = [&](const std::string& which) {
    Recorder recorder;
    const auto status = follow(1'000, {{"all", {{"hang_at", 4}}}}, recorder, [&] {
      for (const int pid : rig_->processes(which == "evenkeel-worker --store" ? 0 : 1)) {
        if (std::ranges::find(neighbours_, pid) != neighbours_.end() || procText(pid, "cmdline").find(which) == std::string::npos) continue;
        ::kill(pid, SIGKILL);
        return;
      }
      ADD_FAILURE() << "no " << which;
    });
    EXPECT_TRUE(status && status->failed) << which;
    expectOnlyTheNeighbour();
    return status && status->failed ? status->failed->node + ": " + status->failed->reason : std::string();
  };
  rounds([&](int) {
    EXPECT_THAT(killed("evenkeel-worker --job"), AllOf(HasSubstr("cpu-1"), HasSubstr("killed by SIGKILL")));
    EXPECT_THAT(killed("evenkeel-agent run"), AllOf(HasSubstr("cpu-1"), HasSubstr("evenkeel-agent is gone")));
    EXPECT_THAT(killed("evenkeel-worker --store"), AllOf(HasSubstr("cpu-0"), HasSubstr("store")));
  });
}

TEST_F(RigFaultTest, DroppedConnectionsCostNoStep) {
  build();
  rounds([&](int round) {
    const std::string gate = makeFifo("gate" + std::to_string(round));
    Recorder recorder;
    recorder.reactToConnection = [&](const std::string& text) {
      if (!text.empty()) openGate(gate);
    };
    const auto status = follow(30, gateAt(gate), recorder, [this] {
      rig_->cutConnections(0);
      rig_->cutConnections(1);
    });
    ASSERT_TRUE(status) << status.error().text();
    EXPECT_EQ(status->state, JobState::Finished);
    EXPECT_EQ(recorder.stepNumbers(), countTo(30));
    expectOnlyTheNeighbour();
  });
}

TEST_F(RigFaultTest, ASlowLinkIsWaitedFor) {
  if (!NodeRig::canShape()) GTEST_SKIP() << "this kernel shapes no links";
  build();
  rounds([&](int) {
    rig_->shape(1, "20mbit");
    rig_->on(1, "rm -rf /root/.cache/evenkeel/bundles /root/.cache/evenkeel/files");
    Recorder recorder;
    const auto status = follow(10, Json::object(), recorder, [] {});
    ASSERT_TRUE(status) << status.error().text();
    EXPECT_EQ(status->state, JobState::Finished);
    EXPECT_GT(recorder.copied["cpu-1"], 0U);
    expectOnlyTheNeighbour();
  });
}

/// Until the store of a node holds a file that `find` finds so.
void awaitFile(const NodeRig& rig, std::size_t node, const std::string& tests) {
  const std::string find = "find /root/.cache/evenkeel/files " + tests + " 2>/dev/null | grep -q .";
  EXPECT_EQ(rig.on(node, "for i in $(seq 300); do " + find + " && exit 0; sleep 0.1; done; exit 1"), 0) << tests;
}

TEST_F(RigFaultTest, AnUploadThatIsCutGoesOnWhereItStopped) {
  if (!NodeRig::canShape()) GTEST_SKIP() << "this kernel shapes no links";
  buildWithoutNeighbour();
  rig_->shape(1, "20mbit");
  struct Cutter final : JobObserver {
    NodeRig* rig = nullptr;
    bool hasCut = false;
    std::uint64_t least = ~std::uint64_t{0}, done = 0;
    void onCopy(const std::string& node, std::uint64_t copied, std::uint64_t total) override {
      if (node != "cpu-1" || total < 200'000) return;
      least = std::min(least, total);
      done = copied;
      if (copied <= total / 2 || rig == nullptr || std::exchange(hasCut, true)) return;
      awaitFile(*rig, 1, R"(-name "*.part" -size +0)");  // what has left us need not have arrived
      rig->cutConnections(1);
    }
  };
  rounds([&](int) {
    for (std::size_t node = 0; node < 2; ++node) rig_->on(node, "rm -rf /root/.cache/evenkeel");
    Cutter cut, again;
    cut.rig = rig_.get();
    ASSERT_FALSE(launcher().startJob(remote(5), cut));
    ASSERT_TRUE(cut.hasCut);
    awaitFile(*rig_, 1, R"(-regextype posix-extended -regex ".*/[0-9a-f]{64}[.][a-z]+[.]part")");  // given back, now that it is cut
    Launcher launcher = this->launcher();
    const auto run = launcher.startJob(remote(5), again);
    ASSERT_TRUE(run) << run.error().text();
    EXPECT_LT(again.least, cut.least) << "what had arrived was sent again";
    Recorder recorder;
    EXPECT_EQ(launcher.followJob(*run, recorder)->state, JobState::Finished);
  });
}

TEST_F(RigFaultTest, AFullDiskIsNamedBeforeTheStartAndInTheMiddle) {
  build({.diskMegabytes = 160});
  rounds([&](int round) {
    rig_->fillDisk(1);
    EXPECT_THAT(refusal(), AllOf(HasSubstr("cpu-1: disk"), HasSubstr("are needed")));
    rig_->emptyDisk(1);
    const std::string gate = makeFifo("full" + std::to_string(round));
    Recorder recorder;
    const auto status = follow(5'000, gateAt(gate, "2"), recorder, [&] {
      rig_->fillDisk(1);
      openGate(gate);
    });
    ASSERT_TRUE(status) << status.error().text();
    EXPECT_EQ(status->state, JobState::Failed);
    ASSERT_TRUE(status->failed);
    EXPECT_EQ(status->failed->node, "cpu-1");
    EXPECT_THAT(status->failed->reason, HasSubstr("No space left on device"));
    rig_->emptyDisk(1);
    expectOnlyTheNeighbour();
  });
}

// vllm #7074, aws-do-eks PRs #50, #51: the workstation sees all nodes, and one of them does not see another.
TEST_F(RigFaultTest, NodesThatDoNotSeeEachOtherAreNamedBeforeTheStart) {
  build();
  rounds([&](int) {
    ASSERT_EQ(rig_->on(1, "ip route add unreachable 10.77.0.11/32"), 0);
    const std::string said = refusal();
    EXPECT_THAT(said,
                AllOf(HasSubstr("cpu-1: connections: cannot connect to cpu-0: No route to host"), HasSubstr("train_address")));
    ASSERT_EQ(rig_->on(1, "ip route del unreachable 10.77.0.11/32"), 0);
    expectOnlyTheNeighbour();
  });
}

TEST_F(RigFaultTest, AReadOnlyHomeIsNamed) {
  buildWithoutNeighbour();  // what is open there could not become read-only
  rig_->makeHomeReadOnly(1);
  rounds([&](int) { EXPECT_THAT(refusal(), AllOf(HasSubstr("cpu-1: disk"), HasSubstr("cannot be written"), HasSubstr("XDG_"))); });
  EXPECT_THAT(rig_->processes(0), IsEmpty());
  EXPECT_THAT(rig_->processes(1), IsEmpty());
}

TEST_F(RigFaultTest, AShellThatPrintsDisturbsNothing) {
  build();
  rounds([&](int) {
    rig_->makeNoisy(0);
    rig_->makeNoisy(1);
    Recorder recorder;
    const auto status = follow(10, Json::object(), recorder, [] {});
    ASSERT_TRUE(status) << status.error().text();
    EXPECT_EQ(status->state, JobState::Finished);
    EXPECT_EQ(recorder.stepNumbers(), countTo(10));
    expectOnlyTheNeighbour();
  });
}

TEST_F(RigFaultTest, AChangedHostKeyIsNeverBypassed) {
  build();
  rounds([&](int) {
    rig_->changeHostKey(1);
    EXPECT_THAT(refusal(),
                AllOf(HasSubstr("cpu-1: reachable: the key of 10.77.0.12 port 22 has changed"), HasSubstr("ssh-keygen -R")));
    rig_->writeKnownHosts();  // a person has looked at it
    expectOnlyTheNeighbour();
  });
}

}  // namespace
}  // namespace evenkeel
