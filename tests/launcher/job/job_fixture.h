// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launcher/agent/processes.h"
#include "launcher/job/job.h"
#include "launcher/job/layout.h"
#include "tests/support/plans.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {

/// Writes down what it is told; a test may react to it.
struct Recorder final : JobObserver {
  std::vector<PreflightRow> rows;
  std::vector<JobState> states;
  std::vector<StepRecord> steps;
  std::vector<std::string> logs, connections;
  std::vector<JobFailure> failures;
  std::map<std::string, std::uint64_t> copied;
  std::function<void(const StepRecord&)> reactToStep;
  std::function<void(const std::string& text)> reactToLog;
  std::function<void(const std::string& text)> reactToConnection;

  void onPreflight(const PreflightRow& row) override { rows.push_back(row); }
  void onCopy(const std::string& node, std::uint64_t done, std::uint64_t) override { copied[node] = done; }
  void onState(JobState state) override { states.push_back(state); }
  void onStep(const StepRecord& step) override {
    steps.push_back(step);
    if (reactToStep) reactToStep(step);
  }
  void onLog(const std::string& node, int rank, const std::string& level, const std::string& text) override {
    logs.push_back(node + " " + std::to_string(rank) + " " + level + ": " + text);
    if (reactToLog) reactToLog(text);
  }
  void onConnection(const std::string& node, const std::string& text) override {
    connections.push_back(node + ": " + text);
    if (reactToConnection) reactToConnection(text);
  }
  void onFailure(const JobFailure& failure) override { failures.push_back(failure); }

  /// The numbers of the steps, in the order in which they were told.
  [[nodiscard]] std::vector<std::int64_t> stepNumbers() const {
    std::vector<std::int64_t> numbers;
    for (const StepRecord& step : steps) numbers.push_back(step.step);
    return numbers;
  }
};

/// 1, 2, ... last
[[nodiscard]] inline std::vector<std::int64_t> countTo(std::int64_t last) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 1; i <= last; ++i) numbers.push_back(i);
  return numbers;
}

/// A launcher with folders of its own, and plans whose workers only speak the protocol. Whatever still runs is stopped at the
/// end of the test.
class JobTest : public ::testing::Test {
 protected:
  JobTest() {
    ::setenv("XDG_DATA_HOME", (path() / "data").c_str(), 1);
    ::setenv("XDG_CACHE_HOME", (path() / "cache").c_str(), 1);
    std::ofstream text(path() / "text.txt");
    for (int line = 0; line < 20; ++line) text << "To be, or not to be\n";
  }
  ~JobTest() override {
    auto last = launcher();
    const auto rows = last.runs();
    if (!rows) return;
    for (const RunRow& row : *rows) {
      if (!hasEnded(row.state)) [[maybe_unused]]
        const auto stopped = last.stopJob(row.run);
    }
  }

  [[nodiscard]] const std::filesystem::path& path() const { return directory_.path(); }
  /// As programs without a window connect: nobody is asked anything.
  [[nodiscard]] static Connector headless() {
    return [](const SshTarget& target, const std::string& name, std::chrono::milliseconds deadline, std::stop_token stop) {
      return connectTo(target, name, deadline, std::move(stop));
    };
  }
  [[nodiscard]] Launcher launcher(Connector connect = headless()) const {
    return *Launcher::open(path() / "data" / "evenkeel", path() / "cache" / "evenkeel", std::move(connect));
  }
  /// tiny-gpt on two nodes with two devices each, one pipeline of four stages.
  [[nodiscard]] LaunchRequest request(std::int64_t steps, const Json& fake = Json::object()) const {
    LaunchRequest request;
    request.plan = planOf(*parseClusterShorthand("2x2:cpu"), *modelFromArgument("tiny-gpt"),
                          {{8, 2, {"cpu-0/0", "cpu-0/1", "cpu-1/0", "cpu-1/1"}, {0, 5, 9, 14, 18}}});
    request.run.steps = steps;
    request.run.train = {path() / "text.txt"};
    request.run.extra["fake"] = fake;
    request.local = true;
    request.programs = EVENKEEL_TEST_PROGRAMS;
    request.timeouts.stop = std::chrono::seconds(30);
    return request;
  }
  [[nodiscard]] std::string makeFifo(const std::string& name) const {
    const std::string fifo = path() / name;
    EXPECT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    return fifo;
  }
  [[nodiscard]] std::filesystem::path runDirectory(const std::string& run, std::size_t nodeRank) const {
    return std::filesystem::canonical(path() / "data" / "evenkeel" / runDirectoryOf(run, nodeRank));
  }
  [[nodiscard]] std::vector<int> processes(const std::string& run) const {
    std::vector<int> pids;
    for (const std::size_t node : {std::size_t{0}, std::size_t{1}}) {
      if (!std::filesystem::exists(path() / "data" / "evenkeel" / runDirectoryOf(run, node))) continue;
      for (const Found& found : processesOf(runDirectory(run, node))) pids.push_back(found.pid);
    }
    return pids;
  }
  [[nodiscard]] int pidOfRank(const std::string& run, int rank) const {
    for (const int pid : processes(run)) {
      std::ifstream environment("/proc/" + std::to_string(pid) + "/environ");
      for (std::string entry; std::getline(environment, entry, '\0');) {
        if (entry == "RANK=" + std::to_string(rank)) return pid;
      }
    }
    return 0;
  }
  [[nodiscard]] int agentPid(const std::string& run, std::size_t nodeRank) const {
    return (*readJsonFile(runDirectory(run, nodeRank) / "agent.json"))["pid"];
  }
  static void openGate(const std::string& fifo) {
    // as many readers as there are open it at once or wait; a gate that nobody waits at is not waited for
    const int fd = ::open(fifo.c_str(), O_RDWR | O_CLOEXEC);
    [[maybe_unused]] const ssize_t written = ::write(fd, "gogogogo", 8);
    gates().push_back(fd);
  }
  static void awaitEnd(const std::vector<int>& pids) {
    for (const int pid : pids) {
      const Fd handle(openPidfd(pid));
      if (!handle.isOpen()) continue;
      pollfd gone{handle.get(), POLLIN, 0};
      EXPECT_EQ(::poll(&gone, 1, 30'000), 1) << "process " << pid << " lives on";
    }
  }

 private:
  static std::vector<int>& gates() {
    static std::vector<int> open;  // until the end of the program, so that what was written is not lost
    return open;
  }
  TemporaryDirectory directory_;
};

}  // namespace evenkeel
