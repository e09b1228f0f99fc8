// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "core/search/search.h"

namespace evenkeel {

/// What a run of some steps takes under a plan with predictions.
struct RunCost {
  std::int64_t steps = 0;
  double tokens = 0;
  Seconds duration;
  double deviceHours = 0;       // of the devices that are used
  std::optional<double> price;  // of the nodes that are used, whole ones; empty where one of them has no price
  std::string unpriced;         // the first node without one
};
/// `plan.predicted` must be filled.
[[nodiscard]] RunCost runCost(const Plan& plan, std::int64_t steps);
/// {"steps", "tokens", "hours", "device_hours", "price"}; no price where it is not known.
[[nodiscard]] Json toJson(const RunCost& cost);
/// Steps that train so many tokens at least.
[[nodiscard]] std::int64_t stepsFor(std::int64_t tokens, const Training& training);

/// What a plan is wanted for.
enum class Objective {
  Time,      // the fastest
  Cost,      // the least price of the used nodes for a token
  Deadline,  // the least price of those that train `steps` within `deadline`
};
[[nodiscard]] std::span<const std::pair<std::string_view, Objective>> objectiveWords();

struct Goal {
  Objective objective = Objective::Time;
  std::int64_t steps = 0;  // Deadline: at least 1
  Seconds deadline;
};

/// The planner's plan for the goal. For a price it is run again with nodes left idle: whole looks of nodes, half of them or one,
/// as long as that is cheaper; what cannot be by its work alone is left out. Only planners that take exclude=. As Planner::plan,
/// and InvalidInput for a node without price, Infeasible where the fastest plan misses the deadline.
[[nodiscard]] Result<Plan> planFor(const Goal& goal, const Planner& planner, const SearchTask& task, SearchObserver& observer,
                                   std::stop_token stop);

}  // namespace evenkeel
