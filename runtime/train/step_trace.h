// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "core/trace/timeline.h"
#include "runtime/device/compute_clock.h"
#include "runtime/job/events.h"

namespace evenkeel {

/// What one rank did when, in the steps that the run names (Run::traceSteps): written as `timeline` events, of which
/// core/trace/measured.h makes the picture of all ranks. Costs nothing in other steps.
class StepTrace {
 public:
  explicit StepTrace(std::vector<std::int64_t> steps) : steps_(std::move(steps)) {}

  /// `step` from 1.
  void begin(std::int64_t step);
  [[nodiscard]] bool isOn() const { return isOn_; }

  /// From `start` until now. What takes less than a microsecond is left out. `waitsForRank`: of a wait, whose tensor was missing; -1: of several.
  void add(Span::Kind kind, SteadyClock::time_point start, std::int64_t microBatch = -1, int waitsForRank = -1);
  /// All ranks are at this point at about the same time: the clocks of nodes need not agree.
  void meet() { met_ = SteadyClock::now(); }

  void write(EventWriter& events) const;

 private:
  struct Entry {
    Span::Kind kind;
    SteadyClock::time_point start, end;
    std::int64_t microBatch;
    int waitsForRank;
  };
  std::vector<std::int64_t> steps_;
  bool isOn_ = false;
  std::int64_t step_ = 0;
  SteadyClock::time_point met_;
  std::vector<Entry> entries_;
};

}  // namespace evenkeel
