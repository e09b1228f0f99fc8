// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <ctime>

#include "core/base/words.h"

namespace evenkeel {
namespace {

constexpr std::array<std::pair<std::string_view, JobState>, 5> kStates = {{{"preparing", JobState::Preparing},
                                                                           {"running", JobState::Running},
                                                                           {"finished", JobState::Finished},
                                                                           {"failed", JobState::Failed},
                                                                           {"stopped", JobState::Stopped}}};

Json finite(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

/// "2026-11-30T11:45:01Z"
std::string isoTime(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

}  // namespace

std::string_view name(JobState state) { return wordOf(kStates, state); }

std::optional<JobState> jobStateOf(std::string_view name) {
  for (const auto& [word, state] : kStates) {
    if (word == name) return state;
  }
  return std::nullopt;
}

std::string againstPrediction(double measured, double predicted) {
  const auto times = [](double factor) { return fmt::format("{:.{}f}x", factor, factor < 9.95 ? 1 : 0); };
  if (measured > 2 * predicted) return times(measured / predicted) + " slower than predicted";
  if (predicted > 2 * measured) return times(predicted / measured) + " faster than predicted";
  return fmt::format("{:+.0f} %", 100 * (predicted / measured - 1));
}

JobStatus::Spread spreadOf(std::vector<double> values) {
  assert(!values.empty());
  std::ranges::sort(values);
  const auto at = [&](double fraction) {
    const double position = fraction * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
  };
  return {.median = at(0.5), .p5 = at(0.05), .p95 = at(0.95)};
}

Json toJson(const JobStatus& status) {
  Json json;
  json["run"] = status.run;
  json["state"] = name(status.state);
  json["steps"] = status.steps;
  json["losses"] = Json::array();
  for (const double loss : status.losses) json["losses"].push_back(finite(loss));
  if (status.isRehearsal) json["rehearsal"] = true;
  if (!status.queue.empty()) json["queue"] = status.queue;
  if (!status.attempts.empty()) json["attempts"] = status.attempts;
  json["iteration_ms"] = nullptr;
  if (status.iterationMs) {
    json["iteration_ms"] = Json{{"median", finite(status.iterationMs->median)},
                                {"p5", finite(status.iterationMs->p5)},
                                {"p95", finite(status.iterationMs->p95)}};
  }
  json["predicted_iteration_ms"] = status.predictedIterationMs ? finite(*status.predictedIterationMs) : Json(nullptr);
  json["tokens_per_s"] = finite(status.tokensPerSecond);
  json["peak_bytes"] = Json::object();
  for (const auto& [rank, bytes] : status.peakBytes) json["peak_bytes"][std::to_string(rank)] = bytes;
  json["failed"] = nullptr;
  if (status.failed) {
    json["failed"] = Json{{"rank", status.failed->rank},
                          {"node", status.failed->node},
                          {"reason", status.failed->reason},
                          {"last_step", status.failed->lastStep}};
  }
  return json;
}

Json toJson(const std::vector<RunRow>& runs) {
  Json json{{"runs", Json::array()}};
  for (const RunRow& row : runs) {
    json["runs"].push_back(
        Json{{"run", row.run}, {"state", name(row.state)}, {"started", isoTime(row.started)}, {"steps", row.steps}});
    if (row.isRehearsal) json["runs"].back()["rehearsal"] = true;
    if (row.isQueued) json["runs"].back()["queued"] = true;
  }
  return json;
}

}  // namespace evenkeel
