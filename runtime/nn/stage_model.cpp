// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/nn/stage_model.h"

#include <fmt/format.h>

#include "runtime/nn/units.h"

namespace evenkeel {
namespace {

/// Collects the weights of a unit by the names that core/model gives them.
class WeightsOf {
 public:
  WeightsOf(const Model& model, const Parameters& parameters, const TensorParallel& group, int unit)
      : model_(model),
        parameters_(parameters),
        group_(group),
        layerIndex_(model.layerOfUnit(unit)),
        layer_(fmt::format("layer.{}", layerIndex_)) {}

  EmbeddingWeights embedding() const {
    return {.token_VH = weight("embedding.token"), .position_CH = weight("embedding.position"), .firstToken = firstToken()};
  }

  AttentionWeights attention() const {
    const LinearWeights query = linear(layer_ + ".attention.query"), key = linear(layer_ + ".attention.key");
    return {.norm = norm(layer_ + ".norm1"),
            .query = query,
            .key = key,
            .value = linear(layer_ + ".attention.value"),
            .projection = linear(layer_ + ".attention.projection"),
            .heads = query.weight_OI.size(0) / model_.headDim,
            .kvHeads = key.weight_OI.size(0) / model_.headDim,
            .headDim = model_.headDim,
            .position = model_.position,
            .rotaryBase = model_.rotaryBase,
            .layer = layerIndex_};
  }

  MlpWeights mlp() const {
    return {.norm = norm(layer_ + ".norm2"),
            .gate = linear(layer_ + ".mlp.gate"),
            .fc1 = linear(layer_ + ".mlp.fc1"),
            .fc2 = linear(layer_ + ".mlp.fc2"),
            .activation = model_.activation,
            .layer = layerIndex_};
  }

  HeadWeights head() const {
    return {.norm = norm("head.norm"),
            .token_VH = weight(model_.tiedEmbeddings ? "embedding.token" : "head.weight"),
            .firstToken = firstToken(),
            .vocab = model_.vocab};
  }

 private:
  at::Tensor weight(const std::string& name) const { return parameters_.weight(name); }
  NormWeights norm(const std::string& name) const { return {weight(name + ".weight"), weight(name + ".bias"), model_.norm, model_.normEpsilon}; }
  LinearWeights linear(const std::string& name) const { return {weight(name + ".weight"), weight(name + ".bias")}; }
  std::int64_t firstToken() const { return model_.paddedVocab() / group_.size() * group_.shard(); }

  const Model& model_;
  const Parameters& parameters_;
  const TensorParallel& group_;
  int layerIndex_;
  std::string layer_;
};

std::vector<OpStep> opsOfUnit(const Model& model, int unit, const Parameters& parameters, const TensorParallel& group,
                              const Dropout& dropout) {
  const WeightsOf weights(model, parameters, group, unit);
  switch (model.unitKind(unit)) {
    case UnitKind::Embedding: return embeddingOps(weights.embedding(), group);
    case UnitKind::Attention: return attentionOps(weights.attention(), group, dropout);
    case UnitKind::Mlp: return mlpOps(weights.mlp(), group, dropout);
    case UnitKind::Head: return headOps(weights.head(), group);
  }
  assert(false);
  return {};
}

std::bitset<kOpCount> recomputedOps(const Stage& stage, int unit) {
  std::bitset<kOpCount> ops;
  for (const Recompute& recompute : stage.recompute) {
    if (unit < recompute.units.first || unit >= recompute.units.last) continue;
    for (const Op op : recompute.ops) ops.set(static_cast<std::size_t>(op));
  }
  return ops;
}

}  // namespace

std::vector<OpStep> stepsOfUnit(const Model& model, int unit, const Parameters& parameters, const TensorParallel& group,
                                const Dropout& dropout, Precision precision) {
  std::vector<OpStep> steps = opsOfUnit(model, unit, parameters, group, dropout);
  // A card computes in fp16 itself.
  return precision == Precision::Fp16 && parameters.values().is_cpu() ? storedInHalf(std::move(steps)) : steps;
}

StageModel::StageModel(const Model& model, const Stage& stage, const Parameters& parameters, const TensorParallel& group,
                       const Dropout& dropout, Precision precision)
    : firstUnit_(stage.units.first) {
  for (int unit = stage.units.first; unit < stage.units.last; ++unit)
    units_.push_back(segmentsOf(stepsOfUnit(model, unit, parameters, group, dropout, precision), recomputedOps(stage, unit)));
}

at::Tensor StageModel::forward(const at::Tensor& input, const Batch& batch) const { return forward(input, batch, {}); }

at::Tensor StageModel::forward(const at::Tensor& input, const Batch& batch, const UnitDone& onUnitDone) const {
  Slots slots;
  slots[Slot::Residual] = input;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    // Autograd comes to the input of a unit when it is through with the unit: it adds to weights before it goes on.
    if (onUnitDone && u > 0)
      slots[Slot::Residual].register_hook(
          [onUnitDone, unit = firstUnit_ + static_cast<int>(u)](const at::Tensor&) { onUnitDone(unit); });
    for (const Segment& segment : units_[u]) run(segment, slots, batch);
  }
  return slots.take(Slot::Residual);
}

}  // namespace evenkeel
