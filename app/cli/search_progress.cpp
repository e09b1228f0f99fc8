// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/search_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "app/cli/command.h"
#include "app/cli/table.h"

namespace evenkeel::cli {

SearchProgress::SearchProgress(std::string planner) : planner_(std::move(planner)), onTerminal_(::isatty(STDERR_FILENO) == 1) {}

Result<void> SearchProgress::writeEventsTo(const std::filesystem::path& file) {
  events_.open(file);
  if (!events_) return invalidInput(file.string(), fmt::format("cannot be written ({})", std::strerror(errno)));
  return {};
}

double SearchProgress::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void SearchProgress::event(std::string_view kind, Json fields) {
  if (!events_.is_open()) return;
  Json line;
  line["seconds"] = rounded(elapsed());
  line["planner"] = planner_;
  line["event"] = kind;
  for (auto& [key, value] : fields.items()) line[key] = value;
  if (!(events_ << line.dump() << '\n' << std::flush) && eventsFailure_.empty()) eventsFailure_ = std::strerror(errno);
}

void SearchProgress::show(bool isMilestone) {
  std::string line = fmt::format("{:<10} {:>8}", planner_, shortTime(elapsed()));
  if (best_) line += fmt::format("  best {}", shortTime(best_->value));
  if (bound_ && best_) line += fmt::format("  bound {}  gap {:.1f} %", shortTime(bound_->value), 100 * (1 - *bound_ / *best_));
  if (counters_.evaluated > 0) line += fmt::format("  {} evaluated", shortCount(static_cast<double>(counters_.evaluated)));
  if (!phase_.empty()) line += "  " + phase_;
  if (onTerminal_) note("\r\033[K{}", line);
  else if (isMilestone) note("{}\n", line);
}

void SearchProgress::onPhase(std::string_view phase) {
  phase_ = phase;
  event("phase", {{"phase", phase}});
  show(false);
}

void SearchProgress::onIncumbent(const Incumbent& incumbent) {
  best_ = incumbent.plan.predicted->iteration;
  event("incumbent", {{"iteration_ms", rounded(milliseconds(*best_))}, {"finder", incumbent.finder}, {"plan", toJson(incumbent.plan)}});
  show(true);
}

void SearchProgress::onBound(Seconds bound) {
  bound_ = bound;
  event("bound", {{"lower_bound_ms", rounded(milliseconds(bound))}});
  show(false);
}

void SearchProgress::onCounters(const Counters& counters) {
  counters_ = counters;
  Json pruned = Json::object();
  for (const auto& [reason, count] : counters.pruned) pruned[reason] = count;
  event("counters", {{"evaluated", counters.evaluated}, {"cached", counters.cached}, {"pruned", pruned}});
  show(false);
}

void SearchProgress::onPoint(const SearchPoint& point) {
  event("point", {{"pipelines", point.pipelines},
                  {"inter_variance", rounded(point.interVariance)},
                  {"intra_variance", rounded(point.intraVariance)},
                  {"samples_per_s", rounded(point.samplesPerSecond)}});
}

void SearchProgress::finish() {
  if (onTerminal_) note("\r\033[K");
}

Result<void> SearchProgress::eventsWritten() const {
  if (eventsFailure_.empty()) return {};
  return failed("--events", fmt::format("cannot be written to its end ({}); the plan is not touched by it", eventsFailure_));
}

}  // namespace evenkeel::cli
