// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/plan/problem.h"

namespace evenkeel {

/// One pipeline of a hand-written plan: stage s holds units [cuts[s], cuts[s+1]) on devices "node/index"[s].
struct PipelineText {
  std::int64_t localBatch = 1;
  int microBatch = 1;
  std::vector<std::string> devices;
  std::vector<int> cuts;  // devices.size() + 1 of them, from 0 to the model's unit count
};

/// A plan with one device a stage, for tests. Devices must exist.
[[nodiscard]] inline Plan planOf(Cluster cluster, Model model, const std::vector<PipelineText>& pipelines) {
  Plan plan;
  std::int64_t globalBatch = 0;
  for (const PipelineText& text : pipelines) {
    Pipeline pipeline;
    pipeline.localBatch = text.localBatch;
    pipeline.microBatch = text.microBatch;
    for (std::size_t s = 0; s < text.devices.size(); ++s) {
      Stage stage;
      stage.devices = {cluster.find(text.devices[s]).value()};
      stage.units = {text.cuts.at(s), text.cuts.at(s + 1)};
      pipeline.stages.push_back(std::move(stage));
    }
    globalBatch += text.localBatch;
    plan.pipelines.push_back(std::move(pipeline));
  }
  plan.training = resolveTraining({.globalBatch = globalBatch}, cluster, model);
  plan.cluster = std::move(cluster);
  plan.model = std::move(model);
  return plan;
}

}  // namespace evenkeel
