// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>

namespace evenkeel {

/// Executes one rank of the job, from its files and environment to its last event. Never returns: ends the process with 0 after
/// `finished` and with 1 after `failed`, without unwinding connections that may be broken (that would block).
[[noreturn]] void runWorker(const std::filesystem::path& jobFile);

}  // namespace evenkeel
