// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/nn/stage_model.h"

#include <fmt/format.h>

#include "runtime/nn/units.h"

namespace evenkeel {
namespace {

/// Collects the weights of a unit by the names that core/model gives them.
class WeightsOf {
 public:
  WeightsOf(const Model& model, const Parameters& parameters, int unit)
      : model_(model), parameters_(parameters), layer_(fmt::format("layer.{}", model.layerOfUnit(unit))) {}

  EmbeddingWeights embedding() const { return {weight("embedding.token"), weight("embedding.position")}; }

  AttentionWeights attention() const {
    return {.norm = norm(layer_ + ".norm1"),
            .query = linear(layer_ + ".attention.query"),
            .key = linear(layer_ + ".attention.key"),
            .value = linear(layer_ + ".attention.value"),
            .projection = linear(layer_ + ".attention.projection"),
            .heads = model_.heads,
            .kvHeads = model_.kvHeads,
            .headDim = model_.headDim};
  }

  MlpWeights mlp() const {
    return {.norm = norm(layer_ + ".norm2"), .fc1 = linear(layer_ + ".mlp.fc1"), .fc2 = linear(layer_ + ".mlp.fc2")};
  }

  HeadWeights head() const {
    return {.norm = norm("head.norm"),
            .token_VH = weight(model_.tiedEmbeddings ? "embedding.token" : "head.weight"),
            .vocab = model_.vocab};
  }

 private:
  at::Tensor weight(const std::string& name) const { return parameters_.weight(name); }
  NormWeights norm(const std::string& name) const { return {weight(name + ".weight"), weight(name + ".bias")}; }
  LinearWeights linear(const std::string& name) const { return {weight(name + ".weight"), weight(name + ".bias")}; }

  const Model& model_;
  const Parameters& parameters_;
  std::string layer_;
};

}  // namespace

StageModel::StageModel(const Model& model, UnitRange units, const Parameters& parameters) {
  for (int unit = units.first; unit < units.last; ++unit) {
    const WeightsOf weights(model, parameters, unit);
    switch (model.unitKind(unit)) {
      case UnitKind::Embedding:
        units_.emplace_back([w = weights.embedding()](const at::Tensor& x, const at::Tensor&) { return embed(x, w); });
        break;
      case UnitKind::Attention:
        units_.emplace_back(
            [w = weights.attention()](const at::Tensor& x, const at::Tensor&) { return evenkeel::attention(x, w); });
        break;
      case UnitKind::Mlp:
        units_.emplace_back([w = weights.mlp()](const at::Tensor& x, const at::Tensor&) { return evenkeel::mlp(x, w); });
        break;
      case UnitKind::Head:
        units_.emplace_back([w = weights.head()](const at::Tensor& x, const at::Tensor& targets_BS) {
          return sumOfTokenLosses(x, targets_BS, w);
        });
        break;
    }
  }
}

at::Tensor StageModel::forward(const at::Tensor& input, const at::Tensor& targets_BS) const {
  at::Tensor x = input;
  for (const Unit& unit : units_) x = unit(x, targets_BS);
  return x;
}

}  // namespace evenkeel
