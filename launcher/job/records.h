// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/job/history.h"

namespace evenkeel {

// Fields of a journal's record, which came over a network: absent or of another type, they are 0, not a number, or empty.
[[nodiscard]] std::string eventOf(const Json& record);
[[nodiscard]] std::string textOf(const Json& record, std::string_view key);
[[nodiscard]] std::int64_t integerOf(const Json& record, std::string_view key);
[[nodiscard]] double numberOf(const Json& record, std::string_view key);
[[nodiscard]] StepRecord stepOf(const Json& record);

/// A line of a journal as a record; nothing if it is none.
[[nodiscard]] std::optional<Json> parseRecord(std::string_view line);

/// A line of `evenkeel-agent watch` that says how the Slurm job stands: {"state", "reason", "begin", "limit", "nodes", "over", "said"}.
[[nodiscard]] std::optional<Json> parseQueueLine(std::string_view line);
/// "K RECORD" of it, K below nodeCount.
struct WatchedRecord {
  std::size_t node = 0;
  Json record;
};
[[nodiscard]] std::optional<WatchedRecord> parseWatchedRecord(std::string_view line, std::size_t nodeCount);
/// What prints such lines, on the login node.
[[nodiscard]] std::vector<std::string> watchCommand(const RunRecord& run, const std::vector<std::int64_t>& from, bool once);

// How parts of a run are kept in the history.
[[nodiscard]] Json toJson(const std::vector<JobNode>& nodes);
[[nodiscard]] Result<std::vector<JobNode>> parseJobNodes(const std::string& text, const std::string& source);
[[nodiscard]] Json toJson(const SlurmJob& job);
[[nodiscard]] Result<SlurmJob> parseSlurmJob(const std::string& text, const std::string& source);
[[nodiscard]] Json toJson(const LaunchTimeouts& timeouts);
[[nodiscard]] Result<LaunchTimeouts> parseTimeouts(const std::string& text, const std::string& source);
[[nodiscard]] Json toJson(const JobFailure& failure);
[[nodiscard]] Result<JobFailure> parseFailure(const std::string& text, const std::string& source);

}  // namespace evenkeel
