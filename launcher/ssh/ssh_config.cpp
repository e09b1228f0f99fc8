// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/ssh_config.h"

#include <fmt/format.h>
#include <libssh/libssh.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "core/base/json.h"
#include "launcher/ssh/waits.h"

namespace evenkeel {
namespace {

constexpr const char* kSystemFile = "/etc/ssh/ssh_config";

/// The patterns of a line "Host a !b", "HOST=a" or "host a # said"; empty: it is another line.
std::vector<std::string> patternsOf(std::string line) {
  std::ranges::replace(line, '=', ' ');
  std::istringstream words(line);
  std::string keyword;
  words >> keyword;
  std::ranges::transform(keyword, keyword.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  std::vector<std::string> patterns;
  if (keyword != "host" || line.find('"') != std::string::npos) return patterns;
  for (std::string pattern; words >> pattern && !pattern.starts_with('#');) patterns.push_back(pattern);
  return patterns;
}

bool isNegated(const std::string& pattern) { return pattern.starts_with('!'); }

/// libssh reads files only, so the text is one that no folder holds.
bool parseText(ssh_session session, const std::string& text) {
  const OwnedFd memory(::memfd_create("ssh-config", MFD_CLOEXEC));
  if (memory.get() < 0 || ::write(memory.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return false;
  return ::ssh_options_parse_config(session, fmt::format("/proc/self/fd/{}", memory.get()).c_str()) == SSH_OK;
}

}  // namespace

std::optional<std::string> negationsFirst(std::string_view configuration) {
  std::istringstream lines{std::string(configuration)};
  std::string changed;
  bool isChanged = false;
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> patterns = patternsOf(line);
    if (!std::ranges::is_partitioned(patterns, isNegated)) {
      std::ranges::stable_partition(patterns, isNegated);
      line = fmt::format("Host {}", fmt::join(patterns, " "));
      isChanged = true;
    }
    changed += line + "\n";
  }
  return isChanged ? std::optional(changed) : std::nullopt;
}

bool parseSshConfig(ssh_session session, const std::optional<std::string>& file) {
  const char* const home = std::getenv("HOME");
  const std::string own = file.value_or(std::string(home == nullptr ? "" : home) + "/.ssh/config");
  const auto text = readFile(own);
  const auto changed = text ? negationsFirst(*text) : std::nullopt;
  if (!changed) return ::ssh_options_parse_config(session, file ? file->c_str() : nullptr) == SSH_OK;
  return parseText(session, *changed) && (file || ::ssh_options_parse_config(session, kSystemFile) == SSH_OK);
}

}  // namespace evenkeel
