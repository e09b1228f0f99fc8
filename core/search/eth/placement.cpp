// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/eth/placement.h"

#include <algorithm>
#include <cassert>

#include "core/search/tp_groups.h"

namespace evenkeel {
namespace {

Stage shapeOf(const Model& model, StageSearch& search, const StageChoice& choice, int microBatch) {
  Stage stage;
  stage.tp = choice.tp;
  stage.dp = choice.dp;
  stage.units = choice.units();
  const int samples = (microBatch + choice.dp - 1) / choice.dp;
  const StageTable& table = search.tables().of(search.types()[static_cast<std::size_t>(choice.type)].kind, choice.tp, samples);
  for (const LevelRange& part : choice.parts) {
    const UnitRange blocks{std::max(part.units.first, 1), std::min(part.units.last, model.unitCount() - 1)};
    const OpSet ops = table.ops(part.level);
    if (ops.none() || blocks.size() < 1) continue;
    Recompute recompute{blocks, {}};
    for (std::size_t op = 0; op < ops.size(); ++op) {
      if (ops[op]) recompute.ops.push_back(static_cast<Op>(op));
    }
    stage.recompute.push_back(std::move(recompute));
  }
  return stage;
}

struct Demand {
  int type, tp;
  std::size_t pipeline, stage;
  int replica;
};

}  // namespace

std::vector<Pipeline> placed(const CostModel& model, StageSearch& search, const Limits& limits,
                             std::span<const PipelineChoice> choices, std::span<const std::int64_t> batches,
                             std::span<const int> rankOfNode) {
  assert(choices.size() == batches.size());
  std::vector<Pipeline> pipelines;
  std::vector<Demand> demands;
  for (std::size_t p = 0; p < choices.size(); ++p) {
    Pipeline& pipeline = pipelines.emplace_back();
    pipeline.localBatch = batches[p];
    pipeline.microBatch = static_cast<int>(std::min<std::int64_t>(choices[p].microBatch, batches[p]));
    for (std::size_t s = 0; s < choices[p].stages.size(); ++s) {
      const StageChoice& choice = choices[p].stages[s];
      pipeline.stages.push_back(shapeOf(model.model(), search, choice, choices[p].microBatch));
      pipeline.stages.back().devices.resize(static_cast<std::size_t>(choice.tp * choice.dp));
      for (int r = 0; r < choice.dp; ++r) demands.push_back({choice.type, choice.tp, p, s, r});
    }
  }
  std::ranges::stable_sort(demands, std::greater<>{}, &Demand::tp);

  FreeDevices free(
      limits.devices, [&](DeviceId device) { return search.typeOf(device); },
      [&](int node) { return rankOfNode[static_cast<std::size_t>(node)]; });
  for (const Demand& demand : demands) {
    const std::span devices(pipelines[demand.pipeline].stages[demand.stage].devices);
    if (!free.take(demand.type,
                   devices.subspan(static_cast<std::size_t>(demand.replica * demand.tp), static_cast<std::size_t>(demand.tp))))
      return {};
  }
  return pipelines;
}

}  // namespace evenkeel
