// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/trace/timeline.h"

namespace evenkeel {

/// A span as the rank that measured it knows it.
struct MeasuredSpan {
  Span::Kind kind = Span::Kind::Forward;
  std::int64_t microBatch = -1;
  Seconds start, end;  // from the moment at which all ranks met; before it negative
  int waitsForRank = -1;
  bool operator==(const MeasuredSpan&) const = default;
};

inline constexpr std::string_view kTimelineEvent = "timeline";

/// The events that hold the spans of one rank in one step (resources/docs/protocol.md), as many as keep their lines short.
[[nodiscard]] std::vector<Json> timelineEvents(std::int64_t step, std::span<const MeasuredSpan> spans);

/// The measured timeline of one step of a run, from records that each hold `rank` and the fields of an event: one lane a rank that
/// said something, sorted by pipeline and stage, times from the first begin of all. Clocks are aligned at the moment at which all ranks met.
/// What is damaged or of another step is passed over. InvalidInput, naming the steps that there are: none of this step.
[[nodiscard]] Result<Timeline> measuredTimeline(const Plan& plan, std::int64_t step, std::span<const Json> records);

/// The steps that records have a timeline of, ascending.
[[nodiscard]] std::vector<std::int64_t> tracedSteps(std::span<const Json> records);

}  // namespace evenkeel
