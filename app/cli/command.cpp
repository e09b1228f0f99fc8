// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

namespace evenkeel::cli {
namespace {

namespace fs = std::filesystem;

/// The name under which a file is written until it is whole (writeFileAtomically).
fs::path partOf(const fs::path& file) { return fs::path(file.string() + fmt::format(".{}.part", ::getpid())); }

/// Why a file cannot be made there, as errno says it; 0 if it can. Nothing stays of it.
int obstacleToFile(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return errno;
  ::close(descriptor);
  ::unlink(file.c_str());
  return 0;
}

Result<void> unlessObstructed(const std::string& where, int obstacle, const std::string& remedy) {
  if (obstacle == 0) return {};
  const std::string what = fmt::format("cannot be written ({})", std::strerror(obstacle));
  if (obstacle == ENOSPC || obstacle == EDQUOT || obstacle == EIO) return failed(where, what);
  return invalidInput(where, what, remedy);
}

}  // namespace

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
  if (fs::is_directory(path, failure)) return invalidInput(option + " " + path, "is a folder", "expected the name of a file");
  const fs::path target = fs::is_symlink(path, failure) ? fs::weakly_canonical(path, failure) : fs::path(path);
  const bool isDevice = fs::exists(target, failure) && !fs::is_regular_file(target, failure);  // written to in its place
  const int obstacle = isDevice ? (::access(target.c_str(), W_OK) == 0 ? 0 : errno) : obstacleToFile(partOf(target));
  return unlessObstructed(option + " " + path, obstacle, "name a file in a folder that exists");
}

Result<void> checkOutputFolder(const std::string& option, const std::string& path) {
  if (path.empty()) return {};
  std::error_code failure;
  fs::path there = fs::absolute(path, failure).lexically_normal();  // the nearest that exists
  while (!fs::exists(fs::symlink_status(there, failure)) && there.has_relative_path()) there = there.parent_path();
  const int obstacle = fs::is_directory(there, failure) ? obstacleToFile(partOf(there / "file")) : ENOTDIR;
  return unlessObstructed(option + " " + path, obstacle, "name another folder");
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
