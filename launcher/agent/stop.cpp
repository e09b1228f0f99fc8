// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include "launcher/agent/commands.h"
#include "launcher/agent/journal.h"
#include "launcher/agent/node_job.h"
#include "launcher/agent/processes.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

// The agent needs 5 s from TERM to KILL, for its workers and again for its store.
constexpr int kAgentEndsMs = 11'000;
constexpr std::chrono::milliseconds kGrace{1000};

std::optional<Fd> openAgent(const AgentRecord& record) { return openProcess(record.pid, record.startTime); }

/// Ends the agent of the run in `directory`, and with it its children, if it is still the one that was recorded.
Result<void> endAgent(const fs::path& directory) {
  auto nodeJson = readJsonFile(directory / kNodeFile);
  if (!nodeJson) return std::move(nodeJson).error();
  auto node = parseNodeJob(*nodeJson, (directory / kNodeFile).string());
  if (!node) return std::move(node).error();
  const auto record = loadAgentRecord(directory);
  if (!record) return {};
  if (record->runId != node->runId) {
    return failed(directory.string(), fmt::format("holds the agent of another run ({})", record->runId));
  }
  const auto agent = openAgent(*record);
  if (!agent) return {};
  signalPidfd(agent->get(), SIGTERM);
  pollfd gone{agent->get(), POLLIN, 0};
  if (::poll(&gone, 1, kAgentEndsMs) == 0) {
    signalPidfd(agent->get(), SIGKILL);  // its children die with it
    ::poll(&gone, 1, static_cast<int>(kGrace.count()));
  }
  return {};
}

}  // namespace

Result<Json> stopRun(const fs::path& directory) {
  std::error_code ignored;
  if (fs::exists(directory / kNodeFile, ignored)) {  // else a start that was cut short: whatever it left names the directory
    if (auto ended = endAgent(directory); !ended) return ended.error();
  }
  const std::vector<int> left = endProcesses(processesOf(directory), kGrace);
  return Json{{"stopped", left.empty()}, {"left", left}};
}

Result<Json> statusOfRun(const fs::path& directory) {
  // The order matters: an agent that is seen alive may end after the look, but one that is gone writes no more.
  auto record = loadAgentRecord(directory);
  const bool isAlive = record && openAgent(*record);
  auto last = lastRecord(directory / kJournalFile);
  if (!last) return std::move(last).error();
  std::string state = isAlive ? "running" : "lost";
  std::int64_t lastSeq = 0;
  if (*last) {
    const Json& json = **last;
    lastSeq = json.value("seq", std::int64_t{0});
    if (json.value("event", "") == "ended") state = json.value("state", "failed");
  }
  return Json{{"state", state}, {"last_seq", lastSeq}};
}

}  // namespace evenkeel
