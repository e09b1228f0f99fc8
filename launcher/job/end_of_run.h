// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "launcher/job/history.h"

namespace evenkeel {

/// Notes how a run ended. Whoever is the first to find out also runs the person's end command, on this machine, at most a minute,
/// with EVENKEEL_RUN, EVENKEEL_STATE, EVENKEEL_STEPS and (of a failed run) EVENKEEL_CAUSE and EVENKEEL_NODE in its environment;
/// that it failed is a warning to the observer (may be null).
[[nodiscard]] Result<void> endRun(RunHistory& history, const RunRecord& run, JobState state,
                                  const std::optional<JobFailure>& failure, JobObserver* observer);

}  // namespace evenkeel
