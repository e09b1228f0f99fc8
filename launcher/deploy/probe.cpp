// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/deploy/probe.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

#include "core/base/words.h"

namespace evenkeel {
namespace {

constexpr const char* kScript = R"sh(
data=${1:-${XDG_DATA_HOME:-$HOME/.local/share}}/evenkeel
cache=${1:-${XDG_CACHE_HOME:-$HOME/.cache}}/evenkeel
echo "data=$data"
echo "cache=$cache"
echo "architecture=$(uname -m)"
echo "libc=$(getconf GNU_LIBC_VERSION 2>/dev/null)"
echo "machine=$(cat /proc/sys/kernel/random/boot_id) $(readlink /proc/self/ns/net)"
place=$cache
while [ ! -d "$place" ]; do place=$(dirname -- "$place"); done
[ -w "$place" ] || echo "unwritable=$place"
other=$data
while [ ! -d "$other" ]; do other=$(dirname -- "$other"); done
[ -w "$other" ] || echo "unwritable=$other"
df -Pk -- "$place" 2>/dev/null | { read -r _; read -r _ _ _ free _; echo "free=$free"; }
command -v sha256sum >/dev/null && echo "sha256sum=yes"
command -v zstd >/dev/null && echo "zstd=yes"
command -v gzip >/dev/null && echo "gzip=yes"
exit 0
)sh";

/// The text between two marks in a message; empty if they are not there.
std::string between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = text.substr(begin + before.size());
  const std::size_t end = rest.find(after);
  return std::string(end == std::string_view::npos ? rest : rest.substr(0, end));
}

std::string firstLine(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

}  // namespace

Result<NodeFacts> probe(Host& host, std::chrono::milliseconds deadline, std::stop_token stop, const std::string& folder) {
  std::vector<std::string> argv{"sh", "-c", kScript};
  if (!folder.empty()) argv.insert(argv.end(), {"sh", folder});
  auto output = run(host, {.argv = std::move(argv), .deadline = deadline}, std::move(stop));
  if (!output) return std::move(output).error();
  if (!output->ending.wasGood())
    return failed(host.name(), fmt::format("cannot be examined ({}): {}", output->ending.text(), firstLine(output->err)));
  std::map<std::string, std::string> answers;
  std::istringstream lines(output->out);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) answers[line.substr(0, equals)] = line.substr(equals + 1);
  }
  NodeFacts facts{.dataDirectory = answers["data"],
                  .cacheDirectory = answers["cache"],
                  .architecture = answers["architecture"],
                  .libc = answers["libc"],
                  .machine = answers["machine"],
                  .freeBytes = parseNumber<std::uint64_t>(answers["free"]).value_or(0) * 1024,
                  .unwritable = answers["unwritable"]};
  for (const char* program : {"zstd", "gzip"}) {
    if (answers[program] == "yes") facts.unpackers.emplace_back(program);
  }
  if (!facts.dataDirectory.starts_with('/') || !facts.cacheDirectory.starts_with('/')) {
    return failed(host.name(), "has no home directory: neither HOME nor XDG_DATA_HOME and XDG_CACHE_HOME are set");
  }
  if (answers["sha256sum"] != "yes") return failed(host.name(), "lacks the program sha256sum", "install coreutils there");
  return facts;
}

Error explainFailure(const std::string& where, const std::string& program, const CommandOutput& output) {
  const std::string& said = output.err;
  if (const std::string library = between(said, "error while loading shared libraries: ", ":"); !library.empty()) {
    return failed(where, fmt::format("lacks the library {}, which {} needs", library, program), "install it there");
  }
  if (const std::string version = between(said, "version `", "' not found"); !version.empty()) {
    return failed(where, fmt::format("has too old a system for {}: it needs {}", program, version),
                  "build the programs on a system as old as the oldest node");
  }
  if (said.find("xec format error") != std::string::npos || said.find("cannot execute binary file") != std::string::npos) {
    return failed(where, fmt::format("cannot run {}: it was built for another architecture", program));
  }
  if (said.find("ermission denied") != std::string::npos) {
    return failed(where, fmt::format("may not run {}: {}", program, firstLine(said)),
                  "the cache directory must allow programs (no noexec mount)");
  }
  return failed(
      where, fmt::format("{} does not work ({}){}{}", program, output.ending.text(), said.empty() ? "" : ": ", firstLine(said)));
}

Result<Json> tryPrograms(Host& host, const std::string& directory, std::chrono::milliseconds deadline, std::stop_token stop,
                         const std::string& libraries) {
  const std::string script =
      R"([ -z "$2" ] || export LD_LIBRARY_PATH="$2"; "$1/evenkeel-agent" version >/dev/null || exit; echo agent runs; "$1/evenkeel-worker" --features)";
  auto tried = run(host, {.argv = {"sh", "-c", script, "sh", directory, libraries}, .deadline = deadline}, std::move(stop));
  if (!tried) return std::move(tried).error();
  constexpr std::string_view kAgentRuns = "agent runs\n";
  if (!tried->ending.wasGood())
    return explainFailure(host.name(), tried->out.starts_with(kAgentRuns) ? "evenkeel-worker" : "evenkeel-agent", *tried);
  return parseJson(std::string_view(tried->out).substr(kAgentRuns.size()), host.name() + ": evenkeel-worker --features");
}

}  // namespace evenkeel
