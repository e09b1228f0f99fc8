// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/eth/polish.h"

#include <algorithm>
#include <functional>

#include "core/cost/stage_time.h"

namespace evenkeel {

bool moveCut(Pipeline& pipeline, std::size_t cut, int count) {
  Stage& before = pipeline.stages[cut];
  Stage& behind = pipeline.stages[cut + 1];
  if (before.units.size() <= count || behind.units.size() <= -count) return false;
  const auto rangesFollow = [](Stage& stage, UnitRange units, bool atEnd) {
    // The range at the moved end grows or shrinks with the stage; one that would vanish is dropped.
    if (!stage.recompute.empty()) {
      Recompute& range = atEnd ? stage.recompute.back() : stage.recompute.front();
      const bool reaches = atEnd ? range.units.last == stage.units.last : range.units.first == stage.units.first;
      if (reaches) (atEnd ? range.units.last : range.units.first) = atEnd ? units.last : units.first;
    }
    for (Recompute& range : stage.recompute) {
      range.units = {std::max(range.units.first, units.first), std::min(range.units.last, units.last)};
    }
    std::erase_if(stage.recompute, [](const Recompute& range) { return range.units.size() < 1; });
    stage.units = units;
  };
  const int unit = before.units.last - count;
  rangesFollow(before, {before.units.first, unit}, true);
  rangesFollow(behind, {unit, behind.units.last}, false);
  return true;
}

bool alike(const Pipeline& a, const Pipeline& b) {
  return a.localBatch == b.localBatch && a.microBatch == b.microBatch &&
         std::ranges::equal(a.stages, b.stages, [](const Stage& x, const Stage& y) {
           return x.units == y.units && x.tp == y.tp && x.dp == y.dp && x.recompute == y.recompute;
         });
}

namespace {

/// Each round takes the best of all moves; a bound for plans that creep.
constexpr int kMostRounds = 40;
/// Two pipelines count as equally slow within this.
constexpr double kAsSlow = 1.0 - 1e-6;

using Move = std::function<std::vector<Pipeline>()>;

/// Moves `samples` from one pipeline to another, micro-batches kept within the local batches.
std::vector<Pipeline> withSamplesMoved(std::vector<Pipeline> pipelines, std::size_t from, std::size_t to, std::int64_t samples) {
  if (pipelines[from].localBatch <= samples) return {};
  pipelines[from].localBatch -= samples;
  pipelines[to].localBatch += samples;
  if (pipelines[from].microBatch > pipelines[from].localBatch) {
    if (!std::ranges::all_of(pipelines[from].stages, [](const Stage& stage) { return stage.shares.empty(); })) return {};
    pipelines[from].microBatch = static_cast<int>(pipelines[from].localBatch);
  }
  return pipelines;
}

/// Of the pipelines like that one.
std::vector<Pipeline> withMicroBatch(std::vector<Pipeline> pipelines, std::size_t like, int microBatch) {
  const Pipeline before = pipelines[like];
  if (microBatch < 1 || microBatch > before.localBatch || microBatch == before.microBatch) return {};
  for (const Stage& stage : before.stages) {
    if (!stage.shares.empty() || stage.dp > microBatch) return {};
  }
  for (Pipeline& pipeline : pipelines) {
    if (alike(pipeline, before)) pipeline.microBatch = microBatch;
  }
  return pipelines;
}

std::vector<Move> movesOf(const std::vector<Pipeline>& now, const std::vector<Seconds>& times) {
  const Seconds longest = std::ranges::max(times);
  const auto slowest =
      static_cast<std::size_t>(std::ranges::find_if(times, [&](Seconds t) { return t >= kAsSlow * longest; }) - times.begin());
  const auto fastest = static_cast<std::size_t>(std::ranges::min_element(times) - times.begin());
  std::vector<Move> moves;
  for (std::size_t cut = 0; cut + 1 < now[slowest].stages.size(); ++cut) {
    for (const int count : {-2, -1, 1, 2}) {
      moves.push_back([&now, slowest, cut, count]() -> std::vector<Pipeline> {
        std::vector<Pipeline> changed = now;
        for (std::size_t p = 0; p < now.size(); ++p) {
          if (alike(now[p], now[slowest]) && !moveCut(changed[p], cut, count)) return {};
        }
        return changed;
      });
    }
  }
  const int microBatch = now[slowest].microBatch;
  for (const int other : {microBatch - 1, microBatch + 1, microBatch / 2, 2 * microBatch}) {
    moves.push_back([&now, slowest, other] { return withMicroBatch(now, slowest, other); });
  }
  if (fastest == slowest) return moves;
  for (const std::int64_t samples :
       {std::int64_t{1}, std::int64_t{now[fastest].microBatch}, std::int64_t{now[slowest].microBatch}}) {
    moves.push_back([&now, slowest, fastest, samples] { return withSamplesMoved(now, slowest, fastest, samples); });
  }
  return moves;
}

}  // namespace

void polish(SearchSession& session) {
  for (int round = 0; round < kMostRounds && !session.stopped() && !session.incumbent().empty(); ++round) {
    const std::vector<Pipeline> now = session.incumbent();
    const Seconds before = session.incumbentTime();
    std::vector<Seconds> times;
    for (const Pipeline& pipeline : now) times.push_back(simulate(pipelineTimes(session.model(), pipeline)).time);
    const std::vector<Move> moves = movesOf(now, times);
    session.consider(
        moves.size(), [&](std::size_t i) { return moves[i](); }, "eth: polish");
    if (session.incumbentTime() >= before) return;
  }
}

}  // namespace evenkeel
