// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/problem.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/plan/features.h"

namespace evenkeel {
namespace {

bool allHave(const Cluster& cluster, Precision precision) {
  return std::ranges::all_of(cluster.devices(), [&](DeviceId device) { return cluster.typeOf(device).has(precision); });
}

Precision defaultPrecision(const Cluster& cluster) {
  if (runsHere(cluster)) return ownRuntime().precisions.front();
  if (allHave(cluster, Precision::Bf16)) return Precision::Bf16;
  return allHave(cluster, Precision::Fp16) ? Precision::Fp16 : Precision::Fp32;
}

int defaultZeroStage(const Cluster& cluster) {
  const auto& stages = ownRuntime().zeroStages;
  const bool lacksOne = runsHere(cluster) && std::ranges::find(stages, 1) == stages.end();
  return lacksOne ? 0 : 1;
}

}  // namespace

std::optional<Obstacle> obstacleTo(const Model& model, Precision precision, const DeviceType& type) {
  if (!type.has(precision)) return Obstacle{fmt::format("has no {}", name(precision)), "choose fp16 or fp32"};
  if (!model.opaque) return std::nullopt;
  for (const OpaqueLayer* const layer : {&model.opaque->first, &model.opaque->inner, &model.opaque->last}) {
    // Without times the FLOPs tell, none of them too: a first or last layer may cost nothing.
    if (layer->forward.value > 0 || layer->times.empty() || layer->times.contains(type.name.substr(0, type.name.find('@'))))
      continue;
    return Obstacle{fmt::format("has no time in the layers of {}", model.name), "add it to times_ms, or give forward_gflop"};
  }
  return std::nullopt;
}

Training resolveTraining(const TrainingChoice& choice, const Cluster& cluster, const Model& model) {
  Training training;
  training.sequenceLength = choice.sequenceLength.value_or(model.context);
  training.globalBatch = choice.globalBatch.value_or(kDefaultGlobalBatch);
  training.precision = choice.precision.value_or(defaultPrecision(cluster));
  training.zeroStage = choice.zeroStage.value_or(defaultZeroStage(cluster));
  training.gradientSync = choice.gradientSync.value_or(GradientSync::Block);
  training.attention = choice.attention.value_or(AttentionKernel::Unfused);
  return training;
}

}  // namespace evenkeel
