// SPDX-License-Identifier: GPL-3.0-or-later
// Whole jobs on two nodes behind SSH: two servers of the test's own, with folders of their own.
#include <signal.h>

#include "tests/launcher/job/job_fixture.h"
#include "tests/support/private_sshd.h"

namespace evenkeel {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SshJobTest : public JobTest {
 protected:
  void SetUp() override {
    if (const std::string reason = PrivateSshd::reasonToSkip(); !reason.empty()) GTEST_SKIP() << reason;
    // names without spaces: sshd's SetEnv takes no others
    std::string name = "/tmp/evenkeel-nodes-XXXXXX";
    nodes_ = ::mkdtemp(name.data());
    for (const char* node : {"a", "b"}) {
      const auto home = nodes_ / node;
      std::filesystem::create_directories(home);
      servers_.push_back(std::make_unique<PrivateSshd>(
          home, std::map<std::string, std::string>{{"XDG_DATA_HOME", home / "data"}, {"XDG_CACHE_HOME", home / "cache"}}));
    }
  }
  void TearDown() override {
    Launcher last = launcher();
    if (const auto rows = last.runs(); rows) {
      for (const RunRow& row : *rows) {
        if (!hasEnded(row.state)) [[maybe_unused]]
          const auto stopped = last.stopJob(row.run);
      }
    }
    servers_.clear();
    std::error_code ignored;
    if (!nodes_.empty()) std::filesystem::remove_all(nodes_, ignored);
  }

  [[nodiscard]] LaunchRequest remoteRequest(std::int64_t steps, const Json& fake = Json::object()) const {
    LaunchRequest request = this->request(steps, fake);
    request.local = false;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      request.plan.cluster.nodes[i].ssh = {.host = "127.0.0.1",
                                           .port = servers_[i]->port(),
                                           .user = "root",
                                           .identity = servers_[i]->identity(),
                                           .knownHosts = servers_[i]->knownHosts()};
    }
    return request;
  }
  [[nodiscard]] std::vector<int> processesThere(const std::string& run) const {
    std::vector<int> pids;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      const auto directory = nodes_ / (i == 0 ? "a" : "b") / "data" / "evenkeel" / runDirectoryOf(run, i);
      for (const Found& found : processesOf(std::filesystem::canonical(directory))) pids.push_back(found.pid);
    }
    return pids;
  }

  std::filesystem::path nodes_;
  std::vector<std::unique_ptr<PrivateSshd>> servers_;
};

TEST_F(SshJobTest, CopiesItsProgramsOnceAndRuns) {
  Launcher launcher = this->launcher();
  Recorder first, second;
  const auto run = launcher.startJob(remoteRequest(10), first);
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_GT(first.copied["cpu-0"], 0U);
  EXPECT_GT(first.copied["cpu-1"], 0U);
  const auto status = launcher.followJob(*run, first);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(status->state, JobState::Finished);
  EXPECT_EQ(first.stepNumbers(), countTo(10));
  const auto again = launcher.startJob(remoteRequest(5), second);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_THAT(second.copied, IsEmpty());
  EXPECT_EQ(launcher.followJob(*again, second)->state, JobState::Finished);
}

TEST_F(SshJobTest, IsFollowedAcrossACutConnectionWithoutAGapOrADoubleStep) {
  const std::string gate = makeFifo("gate");
  Launcher launcher = this->launcher();
  Recorder recorder;
  const auto run = launcher.startJob(remoteRequest(20, {{"0", {{"gate_at", {{"step", 8}, {"fifo", gate}}}}}}), recorder);
  ASSERT_TRUE(run) << run.error().text();
  recorder.reactToStep = [&](const StepRecord& step) {
    if (step.step != 7) return;
    for (const auto& server : servers_) server->cutConnections();
  };
  recorder.reactToConnection = [&](const std::string& text) {
    if (text.empty()) return;
    openGate(gate);  // the job goes on while nobody is connected
  };
  const auto status = launcher.followJob(*run, recorder);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(status->state, JobState::Finished);
  EXPECT_EQ(recorder.stepNumbers(), countTo(20));
  EXPECT_EQ(status->steps, 20);
  EXPECT_THAT(recorder.connections, Contains(HasSubstr("the connection is broken")));
}

TEST_F(SshJobTest, StopsOnAllNodesAndLeavesNothing) {
  Launcher launcher = this->launcher();
  Recorder recorder;
  const auto run = launcher.startJob(remoteRequest(1000, {{"all", {{"hang_at", 3}, {"leaves_a_child", true}}}}), recorder);
  ASSERT_TRUE(run) << run.error().text();
  std::stop_source seen;
  recorder.reactToStep = [&](const StepRecord& step) {
    if (step.step == 2) seen.request_stop();
  };
  ASSERT_TRUE(launcher.followJob(*run, recorder, seen.get_token()));
  EXPECT_EQ(processesThere(*run).size(), 9U);  // four workers, their children, the store
  const auto report = launcher.stopJob(*run);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(report->complete());
  EXPECT_THAT(processesThere(*run), IsEmpty());
  EXPECT_EQ(launcher.statusOf(*run)->state, JobState::Stopped);
}

TEST_F(SshJobTest, NamesTheRankThatDiedAndStopsTheOtherNode) {
  Launcher launcher = this->launcher();
  Recorder recorder;
  const Json fake{{"3", {{"signal_at", {{"step", 4}, {"signal", SIGKILL}}}}}, {"all", {{"hang_at", 4}}}};
  const auto run = launcher.startJob(remoteRequest(1000, fake), recorder);
  ASSERT_TRUE(run) << run.error().text();
  const auto status = launcher.followJob(*run, recorder);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(status->failed, (JobFailure{.rank = 3, .node = "cpu-1", .reason = "killed by SIGKILL", .lastStep = 3}));
  EXPECT_THAT(processesThere(*run), IsEmpty());
}

TEST_F(SshJobTest, IsRefusedWithEveryFingerprintThatIsNotKnown) {
  LaunchRequest request = remoteRequest(5);
  for (auto& node : request.plan.cluster.nodes) node.ssh.knownHosts = nodes_ / "nobody";
  std::ofstream(nodes_ / "nobody").close();
  Recorder recorder;
  const auto run = launcher().startJob(request, recorder);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Error::Code::Failed);
  EXPECT_THAT(run.error().text(), HasSubstr("cpu-0: reachable: the key of 127.0.0.1 port"));
  EXPECT_THAT(run.error().text(), HasSubstr("cpu-1: reachable: the key of 127.0.0.1 port"));
  EXPECT_THAT(run.error().text(), HasSubstr("SHA256:"));
}

}  // namespace
}  // namespace evenkeel
