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

Json spanEvent(const Timeline& timeline, const Span& span) {
  const Lane& lane = timeline.lanes[static_cast<std::size_t>(span.lane)];
  Json event;
  event["ph"] = "X";
  event["name"] = span.microBatch < 0 ? std::string(name(span.kind)) : fmt::format("{} {}", name(span.kind), span.microBatch);
  event["cat"] = name(span.kind);
  event["pid"] = lane.pipeline;
  event["tid"] = rowOf(timeline, span);
  event["ts"] = microseconds(span.start);
  event["dur"] = microseconds(span.end - span.start);
  if (span.microBatch >= 0) event["args"]["micro_batch"] = span.microBatch;
  if (span.waitsForLane >= 0) event["args"]["waits_for"] = timeline.lanes[static_cast<std::size_t>(span.waitsForLane)].name;
  return event;
}

}  // namespace

std::string_view name(Span::Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

Json chromeTrace(const Timeline& timeline, std::size_t mostSpans) {
  std::vector<Span> spans = timeline.spans;
  std::ranges::stable_sort(spans, {}, &Span::start);
  const std::size_t shown = std::min(spans.size(), mostSpans);
  std::vector<bool> sends(timeline.lanes.size(), false);
  for (std::size_t i = 0; i < shown; ++i) {
    assert(spans[i].lane >= 0 && spans[i].lane < static_cast<int>(timeline.lanes.size()));
    if (spans[i].kind == Span::Kind::Send) sends[static_cast<std::size_t>(spans[i].lane)] = true;
  }

  Json events = Json::array();
  int lastPipeline = -1;
  for (std::size_t l = 0; l < timeline.lanes.size(); ++l) {
    const Lane& lane = timeline.lanes[l];
    const int row = static_cast<int>(l);
    if (lane.pipeline != lastPipeline)
      events.push_back(metadata("process_name", lane.pipeline, 0, fmt::format("pipeline {}", lane.pipeline)));
    lastPipeline = lane.pipeline;
    events.push_back(metadata("thread_name", lane.pipeline, row, lane.name));
    if (sends[l]) {
      events.push_back(
          metadata("thread_name", lane.pipeline, row + static_cast<int>(timeline.lanes.size()), lane.name + ", sends"));
    }
  }
  for (std::size_t i = 0; i < shown; ++i) events.push_back(spanEvent(timeline, spans[i]));
  if (shown < spans.size()) {
    Json event;
    event["ph"] = "i";
    event["s"] = "g";
    event["name"] = fmt::format("{} later spans are left out", spans.size() - shown);
    event["pid"] = 0;
    event["tid"] = 0;
    event["ts"] = microseconds(spans[shown].start);
    events.push_back(std::move(event));
  }
  Json trace;
  trace["displayTimeUnit"] = "ms";
  trace["traceEvents"] = std::move(events);
  return trace;
}

}  // namespace evenkeel
