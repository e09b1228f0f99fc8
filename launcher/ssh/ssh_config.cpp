// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/ssh_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>
#include <libssh/libssh.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "core/base/json.h"
#include "launcher/ssh/waits.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSystemFile = "/etc/ssh/ssh_config";
constexpr int kMostDepth = 16;  // of files that include files, as ssh and libssh have it

std::string lowerCase(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

/// The words of a line: keyword, then arguments. "Host=a", quotes and comments at the end are understood.
std::vector<std::string> wordsOf(const std::string& line) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < line.size();) {
    const char c = line[i];
    if (c == ' ' || c == '\t' || c == '\r' || (c == '=' && words.size() == 1)) {
      ++i;
    } else if (c == '#') {
      break;
    } else if (c == '"') {
      const std::size_t end = std::min(line.find('"', i + 1), line.size());
      words.push_back(line.substr(i + 1, end - i - 1));
      i = end + 1;
    } else {
      const std::size_t end = std::min(line.find_first_of(words.empty() ? " \t\r=" : " \t\r", i), line.size());
      words.push_back(line.substr(i, end - i));
      i = end;
    }
  }
  return words;
}

bool isNegated(const std::string& pattern) { return pattern.starts_with('!'); }

/// A configuration as libssh reads it right, with all that it includes. libssh reads files only, so the texts are files that no folder holds; they
/// live as long as this does.
class Configuration {
 public:
  /// `folder`: where files are that it includes without a folder.
  explicit Configuration(fs::path folder) : folder_(std::move(folder)) {}

  /// The file to be read in place of that one: itself if nothing needs to change, or if there is none.
  std::string fileFor(const std::string& file) {
    const auto text = readFile(file);
    const auto changed = text ? changedText(*text, 0) : std::nullopt;
    return changed ? keep(*changed) : file;
  }

 private:
  /// Nothing if the text needs no change.
  std::optional<std::string> changedText(const std::string& text, int depth) {
    std::istringstream lines(text);
    std::string changed;
    bool isChanged = false;
    for (std::string line; std::getline(lines, line);) {
      auto instead = changedLine(line, depth);
      isChanged = isChanged || instead;
      changed += (instead ? *instead : line) + "\n";
    }
    return isChanged ? std::optional(changed) : std::nullopt;
  }

  std::optional<std::string> changedLine(const std::string& line, int depth) {
    std::vector<std::string> words = wordsOf(line);
    const std::string keyword = words.empty() ? "" : lowerCase(words.front());
    if (keyword != "host" && keyword != "include") return std::nullopt;
    words.erase(words.begin());
    if (keyword == "include") return depth < kMostDepth ? included(words, depth + 1) : std::nullopt;
    if (std::ranges::is_partitioned(words, isNegated)) return std::nullopt;
    std::ranges::stable_partition(words, isNegated);
    return fmt::format("Host {}", fmt::join(words, " "));
  }

  /// All files that the patterns name as one, because a Host line of one file holds on in the next one for libssh.
  std::optional<std::string> included(const std::vector<std::string>& patterns, int depth) {
    std::string all;
    bool isChanged = patterns.size() > 1;  // libssh takes the first alone
    for (const std::string& pattern : patterns) {
      const bool isPlaced = pattern.starts_with('/') || pattern.starts_with('~');
      isChanged = isChanged || !isPlaced;
      for (const std::string& file : filesNamed(isPlaced ? pattern : (folder_ / pattern).string())) {
        if (std::ranges::find(open_, file) != open_.end()) return std::nullopt;  // a circle: libssh says so
        const auto text = readFile(file);
        if (!text) continue;
        open_.push_back(file);
        const auto changed = changedText(*text, depth);
        open_.pop_back();
        isChanged = isChanged || changed;
        all += (changed ? *changed : *text) + "\n";
      }
    }
    if (!isChanged) return std::nullopt;
    return "Include " + keep(all);
  }

  static std::vector<std::string> filesNamed(const std::string& pattern) {
    glob_t found{};
    std::vector<std::string> files;
    if (::glob(pattern.c_str(), GLOB_TILDE, nullptr, &found) == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    return files;
  }

  std::string keep(const std::string& text) {
    texts_.emplace_back(::memfd_create("ssh-config", MFD_CLOEXEC));
    [[maybe_unused]] const ssize_t written = ::write(texts_.back().get(), text.data(), text.size());
    return fmt::format("/proc/self/fd/{}", texts_.back().get());
  }

  fs::path folder_;
  std::vector<OwnedFd> texts_;
  std::vector<std::string> open_;  // files that are being read, each included by the one before
};

}  // namespace

bool parseSshConfig(ssh_session session, const std::optional<std::string>& file) {
  const char* const home = std::getenv("HOME");
  const fs::path folder = fs::path(home == nullptr ? "" : home) / ".ssh";
  Configuration own(folder), system(fs::path(kSystemFile).parent_path());
  const std::string ownName = file.value_or((folder / "config").string()), ownFile = own.fileFor(ownName);
  if (file) return ::ssh_options_parse_config(session, ownFile.c_str()) == SSH_OK;
  const std::string systemFile = system.fileFor(kSystemFile);
  if (ownFile == ownName && systemFile == kSystemFile) return ::ssh_options_parse_config(session, nullptr) == SSH_OK;
  return ::ssh_options_parse_config(session, ownFile.c_str()) == SSH_OK && ::ssh_options_parse_config(session, systemFile.c_str()) == SSH_OK;
}

}  // namespace evenkeel
