// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>
#include <string>

#include "core/base/json.h"
#include "launcher/ssh/host.h"

namespace evenkeel {

/// What a node says about itself.
struct NodeFacts {
  std::string dataDirectory;    // where runs go: $XDG_DATA_HOME/evenkeel, by default under ~/.local/share; absolute
  std::string cacheDirectory;   // where programs and data go: $XDG_CACHE_HOME/evenkeel, by default under ~/.cache
  std::string architecture;     // "x86_64"
  std::vector<std::string> unpackers;  // of "zstd", "gzip"
  std::string libc;             // "glibc 2.36"; empty: another C library
  std::string machine;          // equal for two nodes exactly if they share loopback: one boot, one network namespace
  std::uint64_t freeBytes = 0;  // where the cache goes
  std::string unwritable;  // the first of both directories, or of what is there of its path, that cannot be written; empty: none
};

/// One command, one script. Changes nothing. With a folder, both directories are FOLDER/evenkeel.
[[nodiscard]] Result<NodeFacts> probe(Host& host, std::chrono::milliseconds deadline, std::stop_token stop = {},
                                      const std::string& folder = {});

/// Runs `evenkeel-worker --features` and `evenkeel-agent version` there. Returns what the worker prints; an Error says in words
/// what the node lacks (libraries: a folder of its own that is searched too): a library, a newer C library, another architecture, permission to run programs.
[[nodiscard]] Result<Json> tryPrograms(Host& host, const std::string& directory, std::chrono::milliseconds deadline,
                                       std::stop_token stop = {}, const std::string& libraries = {});

/// Why a program that was started did not work, in words; where = node.
[[nodiscard]] Error explainFailure(const std::string& where, const std::string& program, const CommandOutput& output);

}  // namespace evenkeel
