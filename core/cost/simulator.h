// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/cost/pipeline_time.h"
#include "core/trace/timeline.h"

namespace evenkeel {

/// What a stage did in one iteration.
struct StageActivity {
  Seconds busy;     // forward and backward
  Seconds waiting;  // time of the pipeline less busy
  Seconds sending;  // its link, beside compute
  Seconds end;      // of its last backward
  bool operator==(const StageActivity&) const = default;
};

struct Simulation {
  Seconds time;
  double bubbleFraction = 0;  // waiting / (stages x time)
  std::vector<StageActivity> stages;
};

/// Event-driven 1F1B of one pipeline: stage i runs min(P - 1 - i, M) forwards ahead, then one forward and one backward in turn.
/// A stage's sends (activations on, gradients back) leave one after the other through its link and beside its compute; where
/// times.transfers says so they stand in the compute stream instead (blocking_simulator.h).
/// `spans` receives forward, backward, send and wait (with whom for); its lanes are the stages. O(stages x micro-batches).
[[nodiscard]] Simulation simulate(const PipelineTimes& times, std::vector<Span>* spans = nullptr);

}  // namespace evenkeel
