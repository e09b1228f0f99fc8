// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/base/json.h"

namespace evenkeel {

/// `run`: starts the node's part of a run in a session of its own, waits until it is started, returns what it prints
/// (agent.json). The caller's process returns; the other one that this makes never does.
[[nodiscard]] Result<Json> startRun(const std::filesystem::path& directory);

enum class TailEnd {
  Complete,    // up to the last record
  Lost,        // the agent is gone and there was no last record
  NobodyReads  // stdout was closed at its other end
};
struct TailOptions {
  std::int64_t from = 1;
  bool once = false;  // what is there now, then Complete
};
/// `tail`: writes the records from `from` on to stdout, and an empty line when there was none for 5 s: so the reader knows that
/// the connection lives, and we notice that nobody reads.
[[nodiscard]] Result<TailEnd> tailJournal(const std::filesystem::path& directory, const TailOptions& options);

/// `stop`: ends the agent and whatever carries the run's directory in its environment, nothing else; at most 15 s.
[[nodiscard]] Result<Json> stopRun(const std::filesystem::path& directory);

/// `status`: {"state", "last_seq"}
[[nodiscard]] Result<Json> statusOfRun(const std::filesystem::path& directory);

}  // namespace evenkeel
