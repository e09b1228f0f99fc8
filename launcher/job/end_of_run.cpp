// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/end_of_run.h"

#include <fmt/format.h>

#include "launcher/job/records.h"
#include "launcher/ssh/local_host.h"

namespace evenkeel {
namespace {

constexpr std::chrono::milliseconds kLimit{60'000};

}  // namespace

Result<void> endRun(RunHistory& history, const RunRecord& run, JobState state, const std::optional<JobFailure>& failure,
                    JobObserver* observer) {
  const auto isNews = history.setState(run.id, state, failure);
  if (!isNews) return isNews.error();
  const std::string command = textOf(run.run, "end_command");
  if (!*isNews || command.empty()) return {};
  const auto status = history.statusOf(run.id);
  std::vector<std::string> argv{"env", "EVENKEEL_RUN=" + run.id, fmt::format("EVENKEEL_STATE={}", name(state)),
                                fmt::format("EVENKEEL_STEPS={}", status ? status->steps : 0)};
  if (failure) argv.insert(argv.end(), {"EVENKEEL_CAUSE=" + failure->reason, "EVENKEEL_NODE=" + failure->node});
  argv.insert(argv.end(), {"sh", "-c", command});
  LocalHost here("this machine");
  const auto ran = evenkeel::run(here, {.argv = std::move(argv), .deadline = kLimit});
  if (observer == nullptr || (ran && ran->ending.wasGood())) return {};
  observer->onLog("this machine", -1, "warning",
                  fmt::format("the end command failed: {}",
                              ran ? ran->ending.text() + (ran->err.empty() ? "" : ": " + ran->err) : ran.error().text()));
  return {};
}

}  // namespace evenkeel
