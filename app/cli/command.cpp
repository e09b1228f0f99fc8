// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

namespace evenkeel::cli {

int report(const Error& error) {
  note("error: {}\n", error.text());
  switch (error.code) {
    case Error::Code::InvalidInput: return kUsage;
    case Error::Code::Infeasible: return kInfeasible;
    case Error::Code::Unreachable:
    case Error::Code::Cancelled:
    case Error::Code::Failed: return kFailed;
  }
  return kFailed;
}

std::filesystem::path ownWorker() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).parent_path() / "evenkeel-worker";
}

void printJson(const Json& json) { fmt::print("{}", prettyText(json)); }

Result<void> checkOutput(const std::string& option, const std::string& path) {
  if (path.empty()) return {};
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) return invalidInput(option + " " + path, "is a folder", "expected the name of a file");
  const auto folder = std::filesystem::path(path).parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) {
    return invalidInput(option + " " + path, fmt::format("cannot be written ({})", std::strerror(errno)), "name a file in a folder that exists");
  }
  return {};
}

Result<void> checkOutputs(const std::vector<std::pair<std::string, std::string>>& optionsAndPaths) {
  std::map<std::filesystem::path, std::string> writers;
  for (const auto& [option, path] : optionsAndPaths) {
    if (auto checked = checkOutput(option, path); !checked) return checked;
    std::error_code failure;
    if (path.empty() || std::filesystem::is_character_file(path, failure)) continue;
    const auto [other, isNew] = writers.emplace(std::filesystem::weakly_canonical(std::filesystem::absolute(path, failure), failure), option);
    if (!isNew) return invalidInput(option + " " + path, fmt::format("is also the file of {}", other->second), "name another file");
  }
  return {};
}

}  // namespace evenkeel::cli
