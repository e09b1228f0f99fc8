// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/pipeline_time.h"

#include <algorithm>
#include <cassert>

namespace evenkeel {

Seconds closedForm(const PipelineTimes& times) {
  assert(!times.full.empty() && times.microBatches >= 1);
  const std::vector<StageTime>& stages = times.microBatches > 1 ? times.full : times.last;
  Seconds fill, pace;
  for (const StageTime& stage : stages) {
    const Seconds t = stage.forward + stage.backward + stage.send;
    fill += t;
    pace = std::max(pace, t);
  }
  return fill + static_cast<double>(times.microBatches - 1) * pace;
}

/// Beside the formula of the header, the waits of each stage: with more micro-batches than stages from i on, it idles while the first
/// micro-batch is behind it, away for X = 2 send_i + sum_{j>i} (f_j + b_j + 2 send_j), but for the n = P - 1 - i forwards that run
/// ahead, and while the last one is, but for n backwards: max(0, X_first - n f_i) + max(0, X_last - n b_i) more.
Seconds pipelineLowerBound(const PipelineTimes& times) {
  assert(!times.full.empty() && times.microBatches >= 1);
  const std::size_t count = times.full.size();
  const auto fullOnes = static_cast<double>(times.microBatches - 1);
  // What the first and the last micro-batch need behind a stage and back to it, and before it on their ways.
  std::vector<Seconds> firstAway(count), lastAway(count);
  for (std::size_t i = count - 1; i-- > 0;) {
    const auto away = [&](const StageTime& own, const StageTime& next, Seconds further) {
      return 2.0 * own.send + next.forward + next.backward + further;
    };
    firstAway[i] = away(times.of(i, 0), times.of(i + 1, 0), firstAway[i + 1]);
    lastAway[i] = away(times.last[i], times.last[i + 1], lastAway[i + 1]);
  }
  Seconds bound, passed;
  for (std::size_t i = 0; i < count; ++i) {
    const StageTime& full = times.full[i];
    const StageTime& last = times.last[i];
    Seconds time = passed + fullOnes * (full.forward + full.backward) + last.forward + last.backward;
    const auto ahead = static_cast<std::int64_t>(count - 1 - i);
    if (times.microBatches > ahead + 1) {  // neither of the two waits sees the last micro-batch of the other: all of these are full
      const Seconds forwards = static_cast<double>(ahead) * full.forward, backwards = static_cast<double>(ahead) * full.backward;
      time += std::max(Seconds{}, firstAway[i] - forwards) + std::max(Seconds{}, lastAway[i] - backwards);
    }
    bound = std::max(bound, time);
    const StageTime& first = times.of(i, 0);
    passed += first.forward + first.send + last.backward + last.send;
  }
  return bound;
}

}  // namespace evenkeel
