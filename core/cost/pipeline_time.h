// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.h"
#include "core/cost/runtime_traits.h"

namespace evenkeel {

/// One stage, one micro-batch.
struct StageTime {
  Seconds forward, backward;  // backward includes recomputation
  Seconds send;               // one direction to the next stage; 0 for the last
  bool buffered = false;      // its sender goes on at once; matters where transfers stand in the compute stream
  auto operator<=>(const StageTime&) const = default;
};

/// All that the time of a pipeline depends on. `last` is for the last micro-batch, which may be smaller.
struct PipelineTimes {
  std::vector<StageTime> full, last;  // by stage, equally many, at least one
  std::int64_t microBatches = 1;      // at least 1, the last one included
  Transfers transfers = Transfers::Overlapped;
  auto operator<=>(const PipelineTimes&) const = default;

  [[nodiscard]] const StageTime& of(std::size_t stage, std::int64_t microBatch) const {
    return microBatch + 1 == microBatches ? last[stage] : full[stage];
  }
};

/// One fill, and then the slowest stage sets the pace:
///     T = sum_i t_i + (M - 1) * max_i t_i,  t_i = forward + backward + send      source: algorithms.md 4
/// A smaller last micro-batch counts as a full one. Guides only, proves nothing. O(stages).
[[nodiscard]] Seconds closedForm(const PipelineTimes& times);

/// No 1F1B schedule of these times is faster: a stage waits until the first micro-batch has passed the stages before it, works on
/// every micro-batch, and then the last gradient passes those stages back.
///     max_i ( sum_m (f_i + b_i) + sum_{j<i} (f_j + b_j + 2 send_j) )             source: algorithms.md 4
/// with the first micro-batch's f and send, the last one's b and send, so that a ragged last micro-batch never overstates.
/// O(stages).
[[nodiscard]] Seconds pipelineLowerBound(const PipelineTimes& times);

}  // namespace evenkeel
