// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/random.h"
#include "core/cost/pipeline_time.h"

namespace evenkeel {

/// Random pipeline number `index`: 1 to 12 stages, 1 to 40 micro-batches, a ragged last one in half of them, sends in half of
/// them.
[[nodiscard]] inline PipelineTimes randomPipeline(std::uint64_t index) {
  const CounterRandom random(7, "pipelines");
  std::uint64_t at = index << 10U;
  PipelineTimes times;
  const std::uint64_t stages = 1 + random.below(at++, 12);
  times.microBatches = 1 + static_cast<std::int64_t>(random.below(at++, 40));
  const double rest = random.below(at++, 2) == 0 ? 1.0 : 0.05 + 0.9 * random.uniform(at++);
  const double mostSend = random.below(at++, 2) == 0 ? 0.0 : 0.5;
  for (std::uint64_t s = 0; s < stages; ++s) {
    StageTime full{{0.2 + random.uniform(at)}, {0.4 + 2 * random.uniform(at + 1)}, {mostSend * random.uniform(at + 2)}};
    at += 3;
    if (s + 1 == stages) full.send = {};
    times.full.push_back(full);
    times.last.push_back({rest * full.forward, rest * full.backward, rest * full.send});
  }
  return times;
}

}  // namespace evenkeel
