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

// How parts of a run are kept in the history.
[[nodiscard]] Json toJson(const std::vector<JobNode>& nodes);
[[nodiscard]] Result<std::vector<JobNode>> parseJobNodes(const std::string& text, const std::string& source);
[[nodiscard]] Json toJson(const LaunchTimeouts& timeouts);
[[nodiscard]] Result<LaunchTimeouts> parseTimeouts(const std::string& text, const std::string& source);
[[nodiscard]] Json toJson(const JobFailure& failure);
[[nodiscard]] Result<JobFailure> parseFailure(const std::string& text, const std::string& source);

}  // namespace evenkeel
