// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/words.h"

namespace evenkeel {

/// A file of /proc with its NULs as spaces; empty if the process is gone.
[[nodiscard]] inline std::string procText(int pid, const char* file) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/" + file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  std::string result = text.str();
  for (char& c : result) {
    if (c == '\0') c = ' ';
  }
  return result;
}

/// Living evenkeel-agent and evenkeel-worker processes whose command line or environment names the given path: those of one test.
[[nodiscard]] inline std::vector<int> processesNaming(const std::string& path) {
  std::vector<int> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto pid = parseNumber<int>(entry.path().filename().string());
    if (!pid) continue;
    const std::string command = procText(*pid, "cmdline");
    const bool isOurs = command.find("evenkeel-agent") != std::string::npos || command.find("evenkeel-worker") != std::string::npos;
    if (isOurs && (command + procText(*pid, "environ")).find(path) != std::string::npos) found.push_back(*pid);
  }
  return found;
}

/// The worker process of a rank among them.
[[nodiscard]] inline std::optional<int> workerOfRank(const std::string& path, int rank) {
  for (const int pid : processesNaming(path)) {
    const bool isRank = (" " + procText(pid, "environ")).find(" RANK=" + std::to_string(rank) + " ") != std::string::npos;
    if (isRank && procText(pid, "cmdline").find("--job") != std::string::npos) return pid;
  }
  return std::nullopt;
}

}  // namespace evenkeel
