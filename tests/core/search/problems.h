// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/base/random.h"
#include "core/profile/analytic_profile.h"
#include "core/search/search.h"

namespace evenkeel {

[[nodiscard]] inline Problem problemOf(Cluster cluster, Model model, std::int64_t globalBatch) {
  Problem problem{std::move(cluster), std::move(model), {}};
  problem.training = resolveTraining({.globalBatch = globalBatch}, problem.cluster, problem.model);
  return problem;
}

[[nodiscard]] inline Problem problemOf(const std::string& cluster, const std::string& model, std::int64_t globalBatch) {
  return problemOf(*clusterFromArgument(cluster), *modelFromArgument(model), globalBatch);
}

struct PlannerRun {
  Budget budget;
  PlannerOptions options;
  SearchObserver* observer = nullptr;
  std::stop_token stop;
};

/// Plans with the analytic profile.
[[nodiscard]] inline Result<Plan> planWith(const std::string& planner, const Problem& problem, PlannerRun run = {}) {
  const AnalyticProfile profile(problem.model, problem.training);
  const SearchTask task{problem, &profile, run.budget, run.options};
  SearchObserver nobody;
  return (*plannerNamed(planner))->plan(task, run.observer ? *run.observer : nobody, run.stop);
}

}  // namespace evenkeel
