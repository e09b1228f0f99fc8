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

/// A model of which only a table of layers is known, with times of two cards.
[[nodiscard]] inline Model tableOfLayers(int layers) {
  Model model;
  model.name = "table";
  model.layers = layers;
  model.hidden = 1024;
  model.heads = model.kvHeads = 1;
  model.headDim = model.ffn = model.vocab = model.vocabMultiple = 1;
  model.context = 512;
  model.tiedEmbeddings = false;
  OpaqueLayer inner{.name = "block", .parameters = 20'000'000, .saved = {30'000'000}, .transient = {4'000'000}};
  inner.times = {{"A100-80-SXM", {Seconds{0.002}, Seconds{0.004}}}, {"V100-32-SXM2", {Seconds{0.006}, Seconds{0.012}}}};
  OpaqueLayer end{.parameters = 1'000'000, .saved = {1'000'000}, .transient = {}, .forward = {1e9}};
  model.opaque = OpaqueLayers{end, inner, end};
  return model;
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
