// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

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

/// `step`: one node's part of a run that a Slurm job starts on all of its nodes (RUN/nodes.json says which is which), in the
/// foreground, to its end. The node of rank 0 hosts the store and tells the others where in RUN/store.json, so RUN has to lie on a
/// file system that they share. False if something of it failed, as its journal says; an Error if it could not be started.
[[nodiscard]] Result<bool> runStep(const std::filesystem::path& run);

struct WatchOptions {
  std::string slurmJob;            // number
  std::vector<std::int64_t> from;  // by node rank, the first record that is wanted
  bool once = false;               // what is there now
};
/// `watch`: what `tail` does for one node, for a whole run of a Slurm job, from any machine that shares its folder: "K RECORD" for
/// each record of node K, "queue {...}" whenever Slurm says something else of the job, an empty line at least every 17 s. Ends with
/// the last record of the last node, or when Slurm says that the job is over (then the last line is that).
[[nodiscard]] Result<TailEnd> watchRun(const std::filesystem::path& run, const WatchOptions& options);

}  // namespace evenkeel
