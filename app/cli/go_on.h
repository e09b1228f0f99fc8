// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "launcher/job/job.h"

namespace evenkeel::cli {

/// The next attempt after a run that died, as its on_failure wishes: from its newest checkpoint; with Replan also under a plan
/// without the node that failed. Nothing if the run has not failed, or is to stay as it is. An Error says why it cannot go on
/// although it should: it has written no checkpoint since it began (then the next attempt would come no further), no other node
/// is left, no plan fits the rest.
[[nodiscard]] Result<std::optional<LaunchRequest>> nextAttempt(Launcher& launcher, const LaunchRequest& failed,
                                                               const JobStatus& status, const std::stop_token& stop);

}  // namespace evenkeel::cli
