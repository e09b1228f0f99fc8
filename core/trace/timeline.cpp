// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

namespace evenkeel {
namespace {

constexpr std::array<std::string_view, 6> kKinds = {"forward", "backward", "send", "wait", "sync", "optimizer"};

/// Sends run beside compute, so a row that held both would overlap; they get a row of their own behind all lanes.
int rowOf(const Timeline& timeline, const Span& span) {
  return span.kind == Span::Kind::Send ? static_cast<int>(timeline.lanes.size()) + span.lane : span.lane;
}

Json metadata(std::string_view what, int pid, int tid, const std::string& text) {
  Json event;
  event["ph"] = "M";
  event["name"] = what;
  event["pid"] = pid;
  event["tid"] = tid;
  event["args"]["name"] = text;
  return event;
}

/// Appends the events of one timeline: pipeline p becomes process first + step x p, its name with `what` behind it.
class Events {
 public:
  Events(const Timeline& timeline, int first, int step, std::string what, Json& events)
      : timeline_(timeline), first_(first), step_(step), what_(std::move(what)), events_(events) {}

  void append(std::size_t mostSpans) {
    std::vector<Span> spans = timeline_.spans;
    std::ranges::stable_sort(spans, {}, &Span::start);
    const std::size_t shown = std::min(spans.size(), mostSpans);
    std::vector<bool> sends(timeline_.lanes.size(), false);
    for (std::size_t i = 0; i < shown; ++i) {
      assert(spans[i].lane >= 0 && spans[i].lane < static_cast<int>(timeline_.lanes.size()));
      if (spans[i].kind == Span::Kind::Send) sends[static_cast<std::size_t>(spans[i].lane)] = true;
    }
    int lastPipeline = -1;
    for (std::size_t l = 0; l < timeline_.lanes.size(); ++l) {
      const Lane& lane = timeline_.lanes[l];
      const int row = static_cast<int>(l), process = processOf(lane);
      if (lane.pipeline != lastPipeline) events_.push_back(metadata("process_name", process, 0, fmt::format("pipeline {}{}", lane.pipeline, what_)));
      lastPipeline = lane.pipeline;
      events_.push_back(metadata("thread_name", process, row, lane.name));
      if (sends[l]) events_.push_back(metadata("thread_name", process, row + static_cast<int>(timeline_.lanes.size()), lane.name + ", sends"));
    }
    for (std::size_t i = 0; i < shown; ++i) events_.push_back(spanEvent(spans[i]));
    if (shown == spans.size()) return;
    Json event;
    event["ph"] = "i";
    event["s"] = "g";
    event["name"] = fmt::format("{} later spans are left out", spans.size() - shown);
    event["pid"] = first_;
    event["tid"] = 0;
    event["ts"] = microseconds(spans[shown].start);
    events_.push_back(std::move(event));
  }

 private:
  [[nodiscard]] int processOf(const Lane& lane) const { return first_ + step_ * lane.pipeline; }

  [[nodiscard]] Json spanEvent(const Span& span) const {
    const Lane& lane = timeline_.lanes[static_cast<std::size_t>(span.lane)];
    Json event;
    event["ph"] = "X";
    event["name"] = span.microBatch < 0 ? std::string(name(span.kind)) : fmt::format("{} {}", name(span.kind), span.microBatch);
    event["cat"] = name(span.kind);
    event["pid"] = processOf(lane);
    event["tid"] = rowOf(timeline_, span);
    event["ts"] = microseconds(span.start);
    event["dur"] = microseconds(span.end - span.start);
    if (span.microBatch >= 0) event["args"]["micro_batch"] = span.microBatch;
    if (span.waitsForLane >= 0) event["args"]["waits_for"] = timeline_.lanes[static_cast<std::size_t>(span.waitsForLane)].name;
    return event;
  }

  const Timeline& timeline_;
  int first_, step_;
  std::string what_;
  Json& events_;
};

Json traceOf(Json events) {
  Json trace;
  trace["displayTimeUnit"] = "ms";
  trace["traceEvents"] = std::move(events);
  return trace;
}

}  // namespace

std::string_view name(Span::Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

Json chromeTrace(const Timeline& timeline, std::size_t mostSpans) {
  Json events = Json::array();
  Events(timeline, 0, 1, "", events).append(mostSpans);
  return traceOf(std::move(events));
}

Json chromeTrace(const Timeline& predicted, const Timeline& measured, std::size_t mostSpans) {
  Json events = Json::array();
  Events(predicted, 0, 2, ", predicted", events).append(mostSpans);
  Events(measured, 1, 2, ", measured", events).append(mostSpans);
  return traceOf(std::move(events));
}

std::vector<LaneTimes> laneTimes(const Timeline& timeline) {
  std::vector<LaneTimes> times(timeline.lanes.size());
  for (const Span& span : timeline.spans) {
    LaneTimes& lane = times[static_cast<std::size_t>(span.lane)];
    const Seconds time = span.end - span.start;
    switch (span.kind) {
      case Span::Kind::Forward: lane.forward += time; break;
      case Span::Kind::Backward: lane.backward += time; break;
      case Span::Kind::Wait: lane.wait += time; break;
      case Span::Kind::Sync: lane.sync += time; break;
      case Span::Kind::Optimizer: lane.optimizer += time; break;
      case Span::Kind::Send: break;
    }
    lane.end = std::max(lane.end, span.end);
  }
  return times;
}

}  // namespace evenkeel
