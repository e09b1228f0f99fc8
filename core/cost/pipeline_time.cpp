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

Seconds pipelineLowerBound(const PipelineTimes& times) {
  assert(!times.full.empty() && times.microBatches >= 1);
  const auto fullOnes = static_cast<double>(times.microBatches - 1);
  Seconds bound, passed;
  for (std::size_t i = 0; i < times.full.size(); ++i) {
    const StageTime& full = times.full[i];
    const StageTime& last = times.last[i];
    bound = std::max(bound, passed + fullOnes * (full.forward + full.backward) + last.forward + last.backward);
    const StageTime& first = times.of(i, 0);
    passed += first.forward + first.send + last.backward + last.send;
  }
  return bound;
}

}  // namespace evenkeel
