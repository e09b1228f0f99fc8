// SPDX-License-Identifier: GPL-3.0-or-later
// The agent as a program, with workers that only speak the protocol.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "launcher/agent/node_job.h"
#include "launcher/agent/processes.h"
#include "launcher/ssh/local_host.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kAgent = EVENKEEL_TEST_PROGRAMS "/evenkeel-agent";
const std::string kWorker = EVENKEEL_TEST_PROGRAMS "/evenkeel-worker";
constexpr auto kLimit = 60s;  // that nothing reaches unless it hangs

/// One run on one node, in a directory of its own; whatever a test leaves running is stopped at its end.
class OneNode {
 public:
  explicit OneNode(int ranks, std::int64_t steps, Json fake = Json::object()) {
    job_.runId = "20260101-000000-test";
    job_.node = "node a";
    job_.worldSize = ranks;
    for (int rank = 0; rank < ranks; ++rank) job_.ranks.push_back({rank, rank, fmt::format("node a/{}", rank)});
    job_.trainAddress = job_.masterAddress = "127.0.0.1";
    job_.hostsStore = true;
    job_.worker = kWorker;
    jobFile_ = {{"format", "evenkeel.job/1"},
                {"run_id", job_.runId},
                {"plan", Json::object()},
                {"run", {{"steps", steps}, {"fake", std::move(fake)}}},
                {"timeouts", {{"peer_s", 5}, {"start_s", 30}}}};
  }
  ~OneNode() {
    if (std::filesystem::exists(path() / kAgentFile)) [[maybe_unused]]
      const auto stopped = agent({"stop"});
  }
  OneNode(const OneNode&) = delete;
  OneNode& operator=(const OneNode&) = delete;

  [[nodiscard]] NodeJob& job() { return job_; }
  [[nodiscard]] const std::filesystem::path& path() const { return directory_.path(); }
  [[nodiscard]] std::string makeFifo(const std::string& name) const {
    const std::string fifo = path() / name;
    EXPECT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    return fifo;
  }
  [[nodiscard]] Json& whole() { return jobFile_; }
  [[nodiscard]] Json& settings() { return jobFile_["run"]; }
  [[nodiscard]] Json& fake() { return jobFile_["run"]["fake"]; }

  CommandOutput start() {
    std::ofstream(path() / kNodeFile) << toJson(job_).dump();
    std::ofstream(path() / kJobFile) << jobFile_.dump();
    return agent({"run"});
  }
  [[nodiscard]] CommandOutput agent(std::vector<std::string> words) const {
    std::vector<std::string> argv{kAgent, words.front(), "--dir", path().string()};
    argv.insert(argv.end(), words.begin() + 1, words.end());
    LocalHost host("here");
    auto output = run(host, {.argv = argv, .deadline = kLimit});
    EXPECT_TRUE(output) << output.error().text();
    return output ? *output : CommandOutput{.ending = {.exitStatus = -1}};
  }
  /// Follows to the end; each record goes to onRecord as it comes.
  std::vector<Json> follow(const std::function<void(const Json&)>& onRecord = {}, std::int64_t from = 1) {
    std::vector<Json> records;
    LocalHost host("here");
    auto output = followLines(
        host, {.argv = {kAgent, "tail", "--dir", path().string(), "--from", std::to_string(from)}, .deadline = kLimit},
        [&](std::string_view line) {
          if (line.empty()) return;
          records.push_back(Json::parse(line));
          if (onRecord) onRecord(records.back());
        });
    EXPECT_TRUE(output) << output.error().text();
    if (output) tailEnding_ = output->ending;
    return records;
  }
  [[nodiscard]] const Ending& tailEnding() const { return tailEnding_; }
  [[nodiscard]] Json record() const { return *readJsonFile(path() / kAgentFile); }
  [[nodiscard]] std::string status() const { return Json::parse(agent({"status"}).out)["state"]; }
  [[nodiscard]] std::vector<int> processes() const {
    std::vector<int> pids;
    for (const Found& found : processesOf(std::filesystem::canonical(path()))) pids.push_back(found.pid);
    return pids;
  }
  [[nodiscard]] int pidOfRank(int rank) const {
    for (const int pid : processes()) {
      std::ifstream environment(fmt::format("/proc/{}/environ", pid));
      for (std::string entry; std::getline(environment, entry, '\0');) {
        if (entry == fmt::format("RANK={}", rank)) return pid;
      }
    }
    return 0;
  }

 private:
  TemporaryDirectory directory_;
  NodeJob job_;
  Json jobFile_;
  Ending tailEnding_;
};

std::vector<Json> only(const std::vector<Json>& records, const std::string& event) {
  std::vector<Json> chosen;
  for (const Json& record : records) {
    if (record["event"] == event) chosen.push_back(record);
  }
  return chosen;
}

/// Waits until processes are gone (they are not our children).
void awaitEnd(const std::vector<int>& pids) {
  for (const int pid : pids) {
    const Fd handle(openPidfd(pid));
    if (!handle.isOpen()) continue;
    pollfd gone{handle.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&gone, 1, 30'000), 1) << "process " << pid << " lives on";
  }
}

bool isStep(const Json& record, int rank, int step) {
  return record["event"] == "step" && record["rank"] == rank && record["step"] == step;
}

TEST(Agent, SaysItsVersion) {
  LocalHost host("here");
  const auto output = run(host, {.argv = {kAgent, "version"}, .deadline = kLimit});
  ASSERT_TRUE(output);
  EXPECT_EQ(Json::parse(output->out)["protocol"], 1);
}

TEST(Agent, JournalsARunFromStartedToEnded) {
  OneNode node(3, 20);
  const CommandOutput started = node.start();
  ASSERT_TRUE(started.ending.wasGood()) << started.err;
  EXPECT_GT(Json::parse(started.out)["store_port"], 0);
  const auto records = node.follow();
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records.front()["event"], "started");
  EXPECT_EQ(records.front()["run"]["steps"], 20);
  EXPECT_EQ(records.back()["event"], "ended");
  EXPECT_EQ(records.back()["state"], "finished");
  for (std::size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i]["seq"], i + 1);
  EXPECT_EQ(only(records, "step").size(), 60U);
  EXPECT_EQ(node.status(), "finished");
  EXPECT_TRUE(node.tailEnding().wasGood());
  awaitEnd({node.record()["pid"].get<int>()});
  EXPECT_THAT(node.processes(), IsEmpty());
}

// DeepSpeed #3489, accelerate PR #514: environment dropped, or replaced.
TEST(Agent, ExtendsTheEnvironmentOfItsWorkers) {
  ::setenv("EVENKEEL_TEST_VARIABLE", "kept", 1);
  OneNode node(1, 1);
  node.job().environment["OMP_NUM_THREADS"] = "3";
  ASSERT_TRUE(node.start().ending.wasGood());
  const auto ready = only(node.follow(), "ready");
  ::unsetenv("EVENKEEL_TEST_VARIABLE");
  ASSERT_EQ(ready.size(), 1U);
  EXPECT_EQ(ready[0]["mine"], "kept");
  EXPECT_EQ(ready[0]["omp"], "3");
  EXPECT_EQ(ready[0]["port"], std::to_string(node.record()["store_port"].get<int>()));
  EXPECT_EQ(ready[0]["address"], "127.0.0.1");
}

TEST(Agent, KeepsFilesForItsUserOnly) {
  OneNode node(1, 1);
  ASSERT_TRUE(node.start().ending.wasGood());
  node.follow();
  for (const char* name : {kJournalFile, kAgentFile, "rank-0.log", "agent.log", "store.log"}) {
    struct stat status {};
    ASSERT_EQ(::stat((node.path() / name).c_str(), &status), 0) << name;
    EXPECT_EQ(status.st_mode & 0777U, 0600U) << name;
  }
}

TEST(Agent, ContinuesATailWhereItWasLeft) {
  OneNode node(2, 10);
  ASSERT_TRUE(node.start().ending.wasGood());
  const auto all = node.follow();
  const auto rest = node.follow({}, 7);
  ASSERT_EQ(rest.size(), all.size() - 6);
  EXPECT_EQ(rest.front(), all[6]);
  EXPECT_EQ(rest.back(), all.back());
}

TEST(Agent, NamesTheRankThatWasKilledAndEndsTheOthers) {
  OneNode node(3, 1000);
  node.fake() = {{"all", {{"hang_at", 5}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  const auto records = node.follow([&](const Json& record) {
    if (isStep(record, 1, 4)) ::kill(node.pidOfRank(1), SIGKILL);
  });
  const auto failures = only(records, "failed");
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0]["rank"], 1);
  EXPECT_EQ(failures[0]["node"], "node a");
  EXPECT_EQ(failures[0]["reason"], "killed by SIGKILL");
  EXPECT_EQ(failures[0]["last_step"], 4);
  EXPECT_EQ(failures[0]["cause"], "own");
  EXPECT_EQ(records.back()["state"], "failed");
  EXPECT_THAT(node.processes(), IsEmpty());
}

TEST(Agent, KillsAWorkerThatIgnoresTerm) {
  OneNode node(2, 1000);
  node.fake() = {{"0", {{"ignores_term", true}, {"hang_at", 3}}}, {"1", {{"signal_at", {{"step", 3}, {"signal", SIGSEGV}}}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  const auto records = node.follow();
  ASSERT_EQ(only(records, "failed").size(), 1U);
  EXPECT_EQ(only(records, "failed")[0]["reason"], "killed by SIGSEGV");
  EXPECT_EQ(records.back()["state"], "failed");
  EXPECT_THAT(node.processes(), IsEmpty());
}

TEST(Agent, RepeatsTheReasonThatAWorkerGives) {
  OneNode node(2, 1000);
  node.fake() = {{"0", {{"hang_at", 3}}},
                 {"1", {{"fail_at", {{"step", 3}, {"reason", "out of memory: 3 GiB"}, {"cause", "own"}}}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  const auto failures = only(node.follow(), "failed");
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0]["reason"], "out of memory: 3 GiB");
  EXPECT_EQ(failures[0]["last_step"], 2);
}

// accelerate PR #4139: the rank that reports is a victim.
TEST(Agent, LetsTheCulpritSpeakAfterAVictim) {
  OneNode node(2, 1000);
  const std::string gate = node.makeFifo("gate");
  node.fake() = {{"0", {{"fail_at", {{"step", 3}, {"reason", "rank 1 fell silent"}, {"cause", "peer"}}}}},
                 {"1", {{"gate_at", {{"step", 3}, {"fifo", gate}}}, {"exit_at", {{"step", 3}, {"status", 7}}}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  const auto records = node.follow([&](const Json& record) {
    if (record["event"] == "failed" && record["rank"] == 0) std::ofstream(gate) << "go";
  });
  const auto failures = only(records, "failed");
  ASSERT_EQ(failures.size(), 2U);
  EXPECT_EQ(failures[0]["cause"], "peer");
  EXPECT_EQ(failures[1]["rank"], 1);
  EXPECT_EQ(failures[1]["cause"], "own");
  EXPECT_THAT(failures[1]["reason"].get<std::string>(), HasSubstr("exit status 7 without a reason"));
}

TEST(Agent, EndsARunWhoseOnlyFailureIsAVictim) {
  OneNode node(2, 1000);
  node.fake() = {{"0", {{"fail_at", {{"step", 3}, {"reason", "rank 5 fell silent"}, {"cause", "peer"}}}}},
                 {"1", {{"hang_at", 3}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  const auto records = node.follow();
  EXPECT_EQ(only(records, "failed").size(), 1U);
  EXPECT_EQ(records.back()["state"], "failed");
}

// DeepSpeed #1722: exit 0 although nodes failed.
TEST(Agent, DoesNotTakeAnEarlyExitForSuccess) {
  OneNode node(2, 5);
  node.fake() = {{"1", {{"ends_without_finished", true}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  const auto records = node.follow();
  ASSERT_EQ(only(records, "failed").size(), 1U);
  EXPECT_THAT(only(records, "failed")[0]["reason"].get<std::string>(), HasSubstr("exit status 0 before it had finished"));
  EXPECT_EQ(records.back()["state"], "failed");
}

TEST(Agent, QuotesTheLogOfAWorkerThatLeavesWithoutAReason) {
  OneNode node(1, 5);
  node.fake() = {{"0", {{"log_bytes", 1000}, {"exit_at", {{"step", 2}, {"status", 3}}}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  const auto failures = only(node.follow(), "failed");
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_THAT(failures[0]["reason"].get<std::string>(), HasSubstr("its log ends with: xxx"));
}

TEST(Agent, IsNotBlockedByALongLogOrNoiseOnStdout) {
  OneNode node(2, 50);
  node.fake() = {{"all", {{"log_bytes", 20'000'000}, {"noise_bytes", 3'000'000}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  const auto records = node.follow();
  EXPECT_EQ(records.back()["state"], "finished");
  EXPECT_EQ(only(records, "step").size(), 100U);
  ASSERT_EQ(only(records, "warning").size(), 2U);
  EXPECT_THAT(only(records, "warning")[0]["text"].get<std::string>(), HasSubstr("it was dropped"));
  EXPECT_GE(std::filesystem::file_size(node.path() / "rank-0.log"), 20'000'000U);
}

TEST(Agent, TakesUnusualBytesAsText) {
  OneNode node(1, 2);
  node.fake() = {{"0", {{"says_hex", "ff00fe7b22"}, {"says", R"({"event":"ended","state":"finished"})"}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  const auto records = node.follow();
  const auto logs = only(records, "log");
  ASSERT_EQ(logs.size(), 2U);
  EXPECT_THAT(logs[0]["text"].get<std::string>(), HasSubstr("ended"));  // said by a worker it is only text
  EXPECT_EQ(only(records, "step").size(), 2U);
  EXPECT_EQ(records.back()["state"], "finished");
}

TEST(Agent, LetsAWorkerCloseItsStdout) {
  OneNode node(2, 5);
  node.fake() = {{"1", {{"close_stdout_at", 3}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  const auto records = node.follow();
  ASSERT_EQ(only(records, "failed").size(), 1U);  // nobody heard that it finished
  EXPECT_EQ(only(records, "failed")[0]["rank"], 1);
}

// DeepSpeed #1995, #3645, #1016: zombies, orphans that hold memory.
TEST(Agent, LeavesNoProcessBehindWhenStopped) {
  OneNode node(2, 1000);
  node.fake() = {{"all", {{"hang_at", 3}, {"leaves_a_child", true}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  CommandOutput stopped;
  const auto records = node.follow([&](const Json& record) {
    if (isStep(record, 1, 2)) stopped = node.agent({"stop"});
  });
  EXPECT_EQ(Json::parse(stopped.out)["stopped"], true);
  EXPECT_THAT(Json::parse(stopped.out)["left"], IsEmpty());
  EXPECT_EQ(records.back()["state"], "stopped");
  EXPECT_THAT(only(records, "failed"), IsEmpty());
  EXPECT_EQ(node.status(), "stopped");
  EXPECT_THAT(node.processes(), IsEmpty());
}

TEST(Agent, StopsARunThatHasEndedWithoutFuss) {
  OneNode node(1, 1);
  ASSERT_TRUE(node.start().ending.wasGood());
  node.follow();
  const CommandOutput stopped = node.agent({"stop"});
  EXPECT_TRUE(stopped.ending.wasGood());
  EXPECT_EQ(Json::parse(stopped.out)["stopped"], true);
  EXPECT_EQ(node.status(), "finished");
}

// A launcher that was killed while it prepared a run has recorded it, and may not have come to write its files.
TEST(Agent, StopsARunThatNeverStartedWithoutFuss) {
  const OneNode node(1, 1);
  const CommandOutput stopped = node.agent({"stop"});
  EXPECT_TRUE(stopped.ending.wasGood()) << stopped.err;
  EXPECT_EQ(Json::parse(stopped.out)["stopped"], true);
}

TEST(Agent, TakesItsWorkersAlongWhenItIsKilled) {
  OneNode node(2, 1000);
  node.fake() = {{"all", {{"hang_at", 3}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  std::vector<int> processes;
  node.follow([&](const Json& record) {
    if (!isStep(record, 1, 2)) return;
    processes = node.processes();
    ::kill(node.record()["pid"].get<int>(), SIGKILL);
  });
  EXPECT_EQ(processes.size(), 3U);  // two workers and the store
  awaitEnd(processes);
  EXPECT_EQ(node.tailEnding().exitStatus, 3);  // lost
  EXPECT_EQ(node.status(), "lost");
}

// DeepSpeed #6807: stopping by name kills another user's run.
TEST(Agent, DoesNotTouchAReusedPid) {
  OneNode node(1, 1);
  ASSERT_TRUE(node.start().ending.wasGood());
  node.follow();
  LocalHost host("here");
  std::stop_source stop;
  const auto otherProcess = followLines(
      host, {.argv = {"sh", "-c", "echo $$; exec sleep 600"}},
      [&](std::string_view line) {
        Json record = node.record();
        record["pid"] = std::stoi(std::string(line));  // the pid of the agent, some time later
        std::ofstream(node.path() / kAgentFile) << record.dump();
        EXPECT_EQ(Json::parse(node.agent({"stop"}).out)["stopped"], true);
        EXPECT_TRUE(startTimeOf(record["pid"].get<int>()).has_value()) << "someone else's process was killed";
        stop.request_stop();
      },
      stop.get_token());
  EXPECT_EQ(otherProcess.error().code, Error::Code::Cancelled);
}

TEST(Agent, LeavesOtherRunsAlone) {
  OneNode first(2, 1000), second(2, 1000);
  first.fake() = {{"all", {{"hang_at", 3}}}};
  const std::string gate = second.makeFifo("gate");
  second.fake() = {{"0", {{"gate_at", {{"step", 3}, {"fifo", gate}}}}}};
  ASSERT_TRUE(first.start().ending.wasGood());
  ASSERT_TRUE(second.start().ending.wasGood());
  const auto records = second.follow([&](const Json& record) {
    if (!isStep(record, 0, 2)) return;
    EXPECT_EQ(Json::parse(first.agent({"stop"}).out)["stopped"], true);
    EXPECT_EQ(second.status(), "running");
    std::ofstream(gate) << "go";
  });
  EXPECT_EQ(records.back()["state"], "finished");
}

TEST(Agent, SaysWhyTheStoreDidNotStart) {
  OneNode node(2, 5);
  node.job().masterAddress = "192.0.2.1";  // of no machine (RFC 5737)
  const CommandOutput started = node.start();
  EXPECT_EQ(started.ending.exitStatus, 1);
  EXPECT_THAT(started.err, AllOf(HasSubstr("rendezvous store"), HasSubstr("cannot bind 192.0.2.1")));
  EXPECT_EQ(node.follow().back()["state"], "failed");
}

TEST(Agent, SaysWhichProgramCannotBeRun) {
  OneNode node(2, 5);
  node.job().worker = "/nowhere/evenkeel-worker";
  const CommandOutput started = node.start();
  EXPECT_EQ(started.ending.exitStatus, 1);
  EXPECT_THAT(started.err, HasSubstr("/nowhere/evenkeel-worker: cannot be run: No such file or directory"));
}

TEST(Agent, RefusesADirectoryThatHasHadItsRun) {
  OneNode node(1, 1);
  ASSERT_TRUE(node.start().ending.wasGood());
  node.follow();
  const CommandOutput again = node.start();
  EXPECT_EQ(again.ending.exitStatus, 1);
  EXPECT_THAT(again.err, HasSubstr("was started here before"));
}

// gloo #520: a peer that is silent is noticed after a minute; one that was stopped is known at once, and named.
TEST(Agent, NamesARankThatWasStoppedAndDoesNotGoOn) {
  OneNode node(2, 1000, {{"all", {{"hang_at", 3}}}});
  ASSERT_TRUE(node.start().ending.wasGood());
  bool hasStopped = false;
  const auto records = node.follow([&](const Json& record) {
    if (!isStep(record, 1, 2) || std::exchange(hasStopped, true)) return;
    ::kill(node.pidOfRank(1), SIGSTOP);
  });
  const auto warnings = only(records, "warning"), failures = only(records, "failed");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0]["rank"], 1);
  EXPECT_THAT(warnings[0]["text"].get<std::string>(), HasSubstr("is stopped by SIGSTOP"));
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0]["rank"], 1);
  EXPECT_EQ(failures[0]["last_step"], 2);
  EXPECT_LT(failures[0]["time"].get<double>() - warnings[0]["time"].get<double>(), 60.0);
  EXPECT_THAT(node.processes(), IsEmpty());
}

TEST(Agent, LetsARankGoOnThatWasStoppedForAMoment) {
  OneNode node(1, 5);
  const std::string gate = node.makeFifo("gate");
  node.fake() = {{"0", {{"gate_at", {{"step", 3}, {"fifo", gate}}}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  const auto records = node.follow([&](const Json& record) {
    if (isStep(record, 0, 2)) ::kill(node.pidOfRank(0), SIGSTOP);
    if (record["event"] != "warning") return;
    ::kill(node.pidOfRank(0), SIGCONT);
    std::ofstream(gate) << "go";
  });
  EXPECT_EQ(records.back()["state"], "finished");
}

TEST(Agent, RefusesACheckpointDirectoryThatAnotherRunWritesTo) {
  const TemporaryDirectory shared;
  const Json checkpoint{{"every", 5}, {"keep", 3}, {"directory", shared.path().string()}};
  OneNode first(1, 1000, {{"all", {{"hang_at", 2}}}}), second(1, 5);
  first.settings()["checkpoint"] = second.settings()["checkpoint"] = checkpoint;
  first.job().runId = "20260101-000000-aaaa";
  first.whole()["run_id"] = first.job().runId;
  ASSERT_TRUE(first.start().ending.wasGood());
  const CommandOutput refused = second.start();
  EXPECT_EQ(refused.ending.exitStatus, 1);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr(shared.path().string()), HasSubstr("run 20260101-000000-aaaa"), HasSubstr("still running")));
  EXPECT_THAT(second.processes(), IsEmpty());
  ASSERT_TRUE(first.agent({"stop"}).ending.wasGood());
  EXPECT_TRUE(second.start().ending.wasGood()) << "what has ended holds nothing";
}

TEST(Agent, RefusesWordsThatItDoesNotKnow) {
  OneNode node(1, 1);
  EXPECT_EQ(node.agent({"dance"}).ending.exitStatus, 2);
  EXPECT_EQ(node.agent({"tail", "--from", "x"}).ending.exitStatus, 2);
  EXPECT_EQ(node.agent({"tail"}).ending.exitStatus, 1);  // nothing was started there
}

TEST(Agent, ShowsWhatIsThereWithOnce) {
  OneNode node(1, 1000);
  node.fake() = {{"0", {{"hang_at", 3}}}};
  ASSERT_TRUE(node.start().ending.wasGood());
  node.follow([&](const Json& record) {
    if (!isStep(record, 0, 2)) return;
    const CommandOutput now = node.agent({"tail", "--from", "1", "--once"});
    EXPECT_TRUE(now.ending.wasGood());
    EXPECT_THAT(now.out, HasSubstr(R"("step":2)"));
    EXPECT_EQ(node.status(), "running");
    EXPECT_TRUE(node.agent({"stop"}).ending.wasGood());
  });
}

}  // namespace
}  // namespace evenkeel
