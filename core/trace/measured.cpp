// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/measured.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/plan/block_map.h"

namespace evenkeel {
namespace {

constexpr std::size_t kSpansOfEvent = 2000;  // about 100 kB a line
constexpr std::size_t kFields = 5;           // of a span: kind, micro-batch, start, end, rank that is waited for

constexpr std::array kKinds = {Span::Kind::Forward, Span::Kind::Backward, Span::Kind::Send, Span::Kind::Wait, Span::Kind::Sync, Span::Kind::Optimizer};

std::optional<Span::Kind> kindNamed(const Json& word) {
  if (!word.is_string()) return std::nullopt;
  const auto found = std::ranges::find_if(kKinds, [&](Span::Kind kind) { return name(kind) == word.get_ref<const std::string&>(); });
  return found == kKinds.end() ? std::nullopt : std::optional(*found);
}

/// Nothing: it is none.
std::optional<MeasuredSpan> spanOf(const Json& json) {
  if (!json.is_array() || json.size() != kFields) return std::nullopt;
  const auto kind = kindNamed(json[0]);
  if (!kind || !json[1].is_number_integer() || !json[2].is_number() || !json[3].is_number() || !json[4].is_number_integer()) return std::nullopt;
  return MeasuredSpan{*kind, json[1].get<std::int64_t>(), fromMicroseconds(json[2].get<double>()), fromMicroseconds(json[3].get<double>()), json[4].get<int>()};
}

std::optional<std::int64_t> integerIn(const Json& record, const char* key) {
  const auto found = record.is_object() ? record.find(key) : record.end();
  if (!record.is_object() || found == record.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

bool isTimeline(const Json& record) {
  const auto event = record.is_object() ? record.find("event") : record.end();
  return record.is_object() && event != record.end() && *event == kTimelineEvent && record.contains("spans") && record["spans"].is_array();
}

}  // namespace

std::vector<Json> timelineEvents(std::int64_t step, std::span<const MeasuredSpan> spans) {
  std::vector<Json> events;
  const auto rounded = [](Seconds time) { return std::round(10 * microseconds(time)) / 10; };
  for (std::size_t first = 0; first == 0 || first < spans.size(); first += kSpansOfEvent) {
    Json list = Json::array();
    for (const MeasuredSpan& span : spans.subspan(first, std::min(kSpansOfEvent, spans.size() - first)))
      list.push_back({name(span.kind), span.microBatch, rounded(span.start), rounded(span.end), span.waitsForRank});
    events.push_back({{"step", step}, {"spans", std::move(list)}});
  }
  return events;
}

std::vector<std::int64_t> tracedSteps(std::span<const Json> records) {
  std::set<std::int64_t> steps;
  for (const Json& record : records) {
    if (const auto step = isTimeline(record) ? integerIn(record, "step") : std::nullopt) steps.insert(*step);
  }
  return {steps.begin(), steps.end()};
}

Result<Timeline> measuredTimeline(const Plan& plan, std::int64_t step, std::span<const Json> records) {
  const std::vector<RankPlace> places = rankPlaces(plan);
  const std::vector<DeviceId> devices = plan.usedDevices();
  std::map<int, std::vector<MeasuredSpan>> ofRanks;
  for (const Json& record : records) {
    if (!isTimeline(record) || integerIn(record, "step") != step) continue;
    const auto rank = integerIn(record, "rank");
    if (!rank || *rank < 0 || *rank >= static_cast<std::int64_t>(places.size())) continue;
    for (const Json& json : record["spans"]) {
      if (const auto span = spanOf(json)) ofRanks[static_cast<int>(*rank)].push_back(*span);
    }
  }
  if (ofRanks.empty()) {
    const auto steps = tracedSteps(records);
    return invalidInput("run", fmt::format("has no timeline of step {}", step),
                        steps.empty() ? "launch it with --trace-step N" : fmt::format("it has those of {}", fmt::join(steps, ", ")));
  }
  std::vector<int> ranks;
  Seconds begin{std::numeric_limits<double>::infinity()};
  for (const auto& [rank, spans] : ofRanks) {
    ranks.push_back(rank);
    for (const MeasuredSpan& span : spans) begin = std::min(begin, span.start);
  }
  std::ranges::stable_sort(ranks, {}, [&](int rank) {
    const RankPlace& place = places[static_cast<std::size_t>(rank)];
    return std::tuple{place.pipeline, place.stage, place.replica, place.shard};
  });
  Timeline timeline;
  std::map<int, int> laneOf;
  for (const int rank : ranks) {
    const auto r = static_cast<std::size_t>(rank);
    laneOf[rank] = static_cast<int>(timeline.lanes.size());
    timeline.lanes.push_back({plan.cluster.nameOf(devices[r]), static_cast<int>(places[r].pipeline), static_cast<int>(places[r].stage)});
  }
  for (const int rank : ranks) {
    for (const MeasuredSpan& span : ofRanks.at(rank)) {
      const auto peer = laneOf.find(span.waitsForRank);
      timeline.spans.push_back({span.kind, laneOf.at(rank), span.microBatch, span.start - begin, span.end - begin, peer == laneOf.end() ? -1 : peer->second});
    }
  }
  return timeline;
}

}  // namespace evenkeel
