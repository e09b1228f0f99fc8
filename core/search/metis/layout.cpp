// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/metis/layout.h"

#include <algorithm>

namespace evenkeel::metis {
namespace {

/// `replicas`: 1 to take replica `first` alone, 0 for all.
Pipeline pipelineOf(const Costed& one, const Model& model, std::int64_t localBatch, int microBatch, int first, int replicas) {
  Pipeline pipeline{.localBatch = localBatch,
                    .microBatch = static_cast<int>(std::min<std::int64_t>(microBatch, localBatch)),
                    .stages = {},
                    .predictedTime = {},
                    .extra = {}};
  for (std::size_t s = 0; s < one.stages().size(); ++s) {
    const auto [dp, tp] = one.degrees[s];
    Stage stage;
    stage.tp = tp;
    stage.dp = replicas == 1 ? 1 : dp;
    stage.units = unitsOf(model, one.ends[s], one.ends[s + 1]);
    const auto begin = one.stages()[s].devices.begin() + first * tp;
    stage.devices.assign(begin, begin + stage.dp * tp);
    if (stage.dp > 1) stage.shares = one.shares[s];
    pipeline.stages.push_back(std::move(stage));
  }
  return pipeline;
}

}  // namespace

bool Costed::isApart() const {
  return std::ranges::all_of(shares, [&](const std::vector<int>& of) { return of == shares.front(); });
}

UnitRange unitsOf(const Model& model, int first, int last) {
  const auto unit = [&](int layer) { return layer == 0 ? 0 : layer == model.layers + 2 ? model.unitCount() : 2 * layer - 1; };
  return {unit(first), unit(last)};
}

std::vector<Pipeline> pipelinesOf(const Costed& one, const Model& model, std::int64_t globalBatch) {
  const int dp = one.degrees.front().first;
  if (!one.isApart()) return {pipelineOf(one, model, globalBatch, one.microBatch, 0, 0)};
  std::vector<Pipeline> pipelines;
  const std::int64_t whole = globalBatch / one.microBatch;
  const int left = static_cast<int>(globalBatch % one.microBatch);
  for (int r = 0, given = 0; r < dp; ++r) {
    const int samples = one.shares[0][static_cast<std::size_t>(r)];
    const int last = std::min(samples, left - given);  // of the smaller last micro-batch
    given += last;
    if (samples * whole + last == 0) continue;  // it has nothing to train: idle
    pipelines.push_back(pipelineOf(one, model, samples * whole + last, whole > 0 ? samples : last, r, 1));
  }
  return pipelines;
}

}  // namespace evenkeel::metis
