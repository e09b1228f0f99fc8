// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "launcher/job/job.h"

namespace evenkeel::cli {

/// What `launch --on-failure` does when a run dies.
enum class OnFailure { Stop, Resume, Replan };
[[nodiscard]] std::optional<OnFailure> onFailureNamed(const std::string& word);

/// The next attempt after a run that died: from its newest checkpoint; with Replan also under a plan without the node that failed. Nothing if
/// the run has not failed. An Error says why it cannot go on although it should: it has written no checkpoint since it began (then the next
/// attempt would come no further), no other node is left, no plan fits the rest.
[[nodiscard]] Result<std::optional<LaunchRequest>> nextAttempt(Launcher& launcher, const LaunchRequest& failed, const JobStatus& status, OnFailure wish,
                                                               const std::stop_token& stop);

}  // namespace evenkeel::cli
