// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/agent/slurm_queue.h"

#include <fmt/format.h>
#include <stdio.h>

#include <algorithm>
#include <array>

namespace evenkeel {
namespace {

/// Those in which a job still has, or will have, something to do. Source: squeue(1), "JOB STATE CODES".
constexpr std::array<std::string_view, 14> kAlive = {"PENDING",      "RUNNING",   "CONFIGURING",  "COMPLETING", "SUSPENDED",
                                                     "REQUEUED",     "RESIZING",  "SIGNALING",    "STAGE_OUT",  "STOPPED",
                                                     "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"};

/// Both outputs of a line of the shell, and its exit status. The line is ours and holds nothing that a person wrote.
std::pair<std::string, int> outputOf(const std::string& line) {
  FILE* pipe = ::popen((line + " 2>&1").c_str(), "re");
  if (pipe == nullptr) return {"no process can be started", -1};
  std::string text;
  std::array<char, 4096> chunk{};
  for (std::size_t count = 0; (count = ::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) text.append(chunk.data(), count);
  return {text, ::pclose(pipe)};
}

std::string firstLineOf(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

}  // namespace

bool QueueState::isOver() const { return !state.empty() && std::ranges::find(kAlive, state) == kAlive.end(); }

QueueState parseQueueState(std::string_view line) {
  std::array<std::string, 5> fields;
  std::size_t field = 0;
  for (const char c : line.substr(0, line.find('\n'))) {
    if (c == '|' && field + 1 < fields.size()) ++field;
    else fields[field] += c;
  }
  for (std::string& text : fields) {
    if (text == "N/A" || text == "None" || text == "(null)") text.clear();
  }
  return {.state = fields[0], .reason = fields[1], .begin = fields[2], .limit = fields[3], .nodes = fields[4]};
}

QueueState askQueue(const std::string& job) {
  const bool isNumber = !job.empty() && std::ranges::all_of(job, [](char c) { return c >= '0' && c <= '9'; });
  if (!isNumber) return {.state = "GONE", .reason = fmt::format("\"{}\" is no number of a job", job)};
  const auto [line, status] = outputOf(fmt::format("timeout 6 squeue -h -t all -j {} -o '%T|%r|%S|%l|%N'", job));
  if (status == 0 && !line.empty()) return parseQueueState(line);
  const bool isForgotten = status == 0 || line.find("Invalid job id") != std::string::npos;
  if (!isForgotten) return {.reason = line.empty() ? "squeue does not answer" : firstLineOf(line)};
  const auto [known, found] = outputOf(fmt::format("timeout 6 sacct -X -n -P -j {} -o State", job));
  std::string state = found == 0 ? firstLineOf(known) : std::string();
  state = state.substr(0, state.find(' '));  // "CANCELLED by 1000"
  return state.empty() ? QueueState{.state = "GONE", .reason = "Slurm does not know it any more"} : QueueState{.state = state};
}

Json toJson(const QueueState& state) {
  return {{"state", state.state}, {"reason", state.reason}, {"begin", state.begin}, {"limit", state.limit}, {"nodes", state.nodes}, {"over", state.isOver()}};
}

}  // namespace evenkeel
