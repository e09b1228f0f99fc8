// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/train/step_trace.h"

#include <algorithm>
#include <cmath>

#include "core/trace/measured.h"

namespace evenkeel {

void StepTrace::begin(std::int64_t step) {
  step_ = step;
  isOn_ = std::ranges::find(steps_, step) != steps_.end();
  entries_.clear();
}

void StepTrace::add(Span::Kind kind, SteadyClock::time_point start, std::int64_t microBatch, int waitsForRank) {
  if (!isOn_) return;
  const auto end = SteadyClock::now();
  if (end - start < std::chrono::microseconds(1)) return;
  entries_.push_back({kind, start, end, microBatch, waitsForRank});
}

void StepTrace::write(EventWriter& events) const {
  if (!isOn_) return;
  const auto sinceMeeting = [&](SteadyClock::time_point time) { return std::chrono::duration<double>(time - met_).count(); };
  std::vector<MeasuredSpan> spans;
  for (const Entry& entry : entries_)
    spans.push_back({entry.kind, entry.microBatch, {sinceMeeting(entry.start)}, {sinceMeeting(entry.end)}, entry.waitsForRank});
  for (const Json& fields : timelineEvents(step_, spans)) events.write(std::string(kTimelineEvent), fields);
}

}  // namespace evenkeel
