// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/job/job.h"

namespace evenkeel {

/// The commands that a start would run, a line each; nothing is connected. What can be seen without that is looked at: the nodes that
/// the environment names, and whether there is text to train and evaluate on.
[[nodiscard]] Result<std::vector<std::string>> commandsOf(const LaunchRequest& request, const std::filesystem::path& localCache);

}  // namespace evenkeel
