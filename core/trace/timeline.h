// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace evenkeel {

/// One thing that one lane did: an op on a micro-batch, or a wait for someone.
struct Span {
  enum class Kind { Forward, Backward, Send, Wait, Sync, Optimizer };
  Kind kind = Kind::Forward;
  int lane = 0;                  // index into Timeline::lanes
  std::int64_t microBatch = -1;  // -1: concerns no micro-batch
  Seconds start, end;            // from the begin of the iteration
  int waitsForLane = -1;         // of a Wait: the lane whose result was missing; -1: none
  bool operator==(const Span&) const = default;
};

/// A row of the picture: one stage of one pipeline (simulated) or one rank (measured).
struct Lane {
  std::string name;  // "cpu-0/0" or "pipeline 0, stage 1"
  int pipeline = 0, stage = 0;
  bool operator==(const Lane&) const = default;
};

/// Who did which op on which micro-batch when; simulated and measured alike. Spans of one lane and kind do not overlap.
struct Timeline {
  std::vector<Lane> lanes;
  std::vector<Span> spans;
  bool operator==(const Timeline&) const = default;
};

[[nodiscard]] std::string_view name(Span::Kind kind);

/// Chrome/Perfetto trace events: pid = pipeline, tid = lane, times in us, one metadata event names each row. At most
/// `mostSpans` spans (the earliest), with an instant event that says so when some are left out.
[[nodiscard]] Json chromeTrace(const Timeline& timeline, std::size_t mostSpans = 200'000);
/// Both in one, of every pipeline the predicted rows above the measured ones. At most `mostSpans` spans of each.
[[nodiscard]] Json chromeTrace(const Timeline& predicted, const Timeline& measured, std::size_t mostSpans = 100'000);

/// What a lane spent on each kind of span, and when the last one ended.
struct LaneTimes {
  Seconds forward, backward, wait, sync, optimizer, end;
};
[[nodiscard]] std::vector<LaneTimes> laneTimes(const Timeline& timeline);

}  // namespace evenkeel
