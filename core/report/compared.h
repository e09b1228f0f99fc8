// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cost/evaluate.h"

namespace evenkeel::report {

/// What one planner came to: an evaluation of its plan, or why there is none.
struct Compared {
  std::string planner, summary;
  std::vector<std::string> deviations;
  std::optional<Evaluation> evaluation;  // with timeline, where the pictures are to show one
  std::optional<Error> error;            // where there is no evaluation
  Seconds search;
};

/// "planned"; "infeasible"; "stopped": time or a person ended it before it had a plan, so nothing is known; "failed".
[[nodiscard]] std::string stateOf(const Compared& one);
/// The error for people, without the planner's name, which stands beside it.
[[nodiscard]] std::string reasonOf(const Compared& one);

/// The numbers that planners are compared by. All from the evaluation, as `evaluate` says them of the same plan.
struct KeyFigures {
  Seconds iteration;
  double samplesPerSecond = 0, mfu = 0;
  double bubbleFraction = 0;  // waiting of all used devices until the slowest pipeline is done
  double worstMemory = 0;     // of what that device may use
  std::size_t pipelines = 0, stages = 0, usedDevices = 0, idleDevices = 0;
  std::optional<double> gap;           // to the lower bound
  std::optional<Seconds> ownEstimate;  // what the original's estimator says of the same plan
  std::string stopped;                 // "time limit", ... where it did not end by itself
};
[[nodiscard]] KeyFigures keyFiguresOf(const Evaluation& evaluation);

/// The fastest iteration of all; nothing while no plan is there.
[[nodiscard]] std::optional<Seconds> fastestOf(const std::vector<Compared>& all);

}  // namespace evenkeel::report
