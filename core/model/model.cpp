// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/model.h"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <set>

namespace evenkeel {
namespace {

using Init = TensorSpec::Init;

class TensorList {
 public:
  explicit TensorList(const Model& model) : model_(model) {}

  void norm(const std::string& name) {
    add(name + ".weight", {model_.hidden}, TpSplit::None, Init::One);
    if (model_.norm == Norm::LayerNorm && model_.bias) add(name + ".bias", {model_.hidden}, TpSplit::None, Init::Zero);
  }

  /// y = x W^T + b with W (out, in). A row-split weight has a split bias; a column-split one adds its bias once.
  void linear(const std::string& name, std::int64_t out, std::int64_t in, TpSplit split, double deviation) {
    linear(name, out, in, split, deviation, model_.bias);
  }
  void linear(const std::string& name, std::int64_t out, std::int64_t in, TpSplit split, double deviation, bool bias) {
    add(name + ".weight", {out, in}, split, Init::Normal, deviation);
    if (bias) add(name + ".bias", {out}, split == TpSplit::Rows ? TpSplit::Rows : TpSplit::None, Init::Zero);
  }

  void add(std::string name, std::vector<std::int64_t> shape, TpSplit split, Init init, double deviation = 0.02) {
    tensors_.push_back({std::move(name), std::move(shape), split, init, deviation});
  }

  std::vector<TensorSpec> take() { return std::move(tensors_); }

 private:
  const Model& model_;
  std::vector<TensorSpec> tensors_;
};

void addAttention(const Model& model, const std::string& layer, TensorList& list) {
  const double residual = 0.02 / std::sqrt(2.0 * model.layers);
  const std::int64_t queries = model.heads * model.headDim, keys = model.kvHeads * model.headDim;
  list.norm(layer + ".norm1");
  list.linear(layer + ".attention.query", queries, model.hidden, TpSplit::Rows, 0.02, model.hasQkvBias());
  list.linear(layer + ".attention.key", keys, model.hidden, TpSplit::Rows, 0.02, model.hasQkvBias());
  list.linear(layer + ".attention.value", keys, model.hidden, TpSplit::Rows, 0.02, model.hasQkvBias());
  list.linear(layer + ".attention.projection", model.hidden, queries, TpSplit::Columns, residual);
}

void addMlp(const Model& model, const std::string& layer, TensorList& list) {
  const double residual = 0.02 / std::sqrt(2.0 * model.layers);
  list.norm(layer + ".norm2");
  if (model.gated) list.linear(layer + ".mlp.gate", model.ffn, model.hidden, TpSplit::Rows, 0.02);
  list.linear(layer + ".mlp.fc1", model.ffn, model.hidden, TpSplit::Rows, 0.02);
  list.linear(layer + ".mlp.fc2", model.hidden, model.ffn, TpSplit::Columns, residual);
}

constexpr std::string_view kLayerWord = "layer", kLayerLabel = "Layer";

/// Nobody knows how the parameters are divided: one tensor for each layer.
std::vector<TensorSpec> opaqueTensors(const Model& model, int unit) {
  const auto one = [](std::string name, const OpaqueLayer& layer) {
    if (layer.parameters == 0) return std::vector<TensorSpec>{};
    return std::vector<TensorSpec>{{std::move(name), {layer.parameters}, TpSplit::None, Init::Normal, 0.02}};
  };
  switch (model.unitKind(unit)) {
    case UnitKind::Embedding: return one("first.weight", model.opaque->first);
    case UnitKind::Attention: return one(fmt::format("layer.{}.weight", model.layerOfUnit(unit)), model.opaque->inner);
    case UnitKind::Mlp: return {};
    case UnitKind::Head: return one("last.weight", model.opaque->last);
  }
  assert(false);
  return {};
}

}  // namespace

std::int64_t TensorSpec::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

UnitKind Model::unitKind(int unit) const {
  assert(unit >= 0 && unit < unitCount());
  if (unit == 0) return UnitKind::Embedding;
  if (unit == unitCount() - 1) return UnitKind::Head;
  return unit % 2 == 1 ? UnitKind::Attention : UnitKind::Mlp;
}

std::string_view name(const Model& model, Op op) { return model.opaque && op == Op::Qkv ? kLayerWord : name(op); }
std::string_view label(const Model& model, Op op) { return model.opaque && op == Op::Qkv ? kLayerLabel : label(op); }

std::optional<Op> opNamed(const Model& model, std::string_view name) {
  return model.opaque && name == kLayerWord ? Op::Qkv : opNamed(name);
}

std::vector<Op> opsOfLayer(const Model& model) {
  if (model.opaque) return {Op::Qkv};
  std::vector<Op> ops;
  for (const UnitKind kind : {UnitKind::Attention, UnitKind::Mlp}) ops.insert(ops.end(), opsOf(kind).begin(), opsOf(kind).end());
  return ops;
}

const OpaqueLayer* opaqueLayer(const Model& model, Op op) {
  switch (op) {
    case Op::Embedding: return &model.opaque->first;
    case Op::Qkv: return &model.opaque->inner;
    case Op::Head: return &model.opaque->last;
    default: return nullptr;
  }
}

std::vector<TensorSpec> tensorsOf(const Model& model, int unit) {
  if (model.opaque) return opaqueTensors(model, unit);
  TensorList list(model);
  const std::string layer = fmt::format("layer.{}", model.layerOfUnit(unit));
  switch (model.unitKind(unit)) {
    case UnitKind::Embedding:
      list.add("embedding.token", {model.paddedVocab(), model.hidden}, TpSplit::Rows, Init::Normal);
      if (model.position == Position::Learned)
        list.add("embedding.position", {model.context, model.hidden}, TpSplit::None, Init::Normal);
      break;
    case UnitKind::Attention: addAttention(model, layer, list); break;
    case UnitKind::Mlp: addMlp(model, layer, list); break;
    case UnitKind::Head:
      list.norm("head.norm");
      list.add(model.tiedEmbeddings ? "embedding.token" : "head.weight", {model.paddedVocab(), model.hidden}, TpSplit::Rows,
               Init::Normal);
      break;
  }
  return list.take();
}

std::int64_t storedParameters(const Model& model, int first, int last) {
  // All layers are alike: count the two kinds once and multiply, so that searches may ask often.
  const auto countOf = [&](int unit) {
    std::int64_t sum = 0;
    for (const TensorSpec& tensor : tensorsOf(model, unit)) sum += tensor.elements();
    return sum;
  };
  std::int64_t sum = 0;
  int attention = 0, mlp = 0;
  for (int unit = first; unit < last; ++unit) {
    switch (model.unitKind(unit)) {
      case UnitKind::Attention: ++attention; break;
      case UnitKind::Mlp: ++mlp; break;
      case UnitKind::Embedding:
      case UnitKind::Head: sum += countOf(unit); break;
    }
  }
  if (attention > 0) sum += attention * countOf(1);
  if (mlp > 0) sum += mlp * countOf(2);
  const bool holdsBoth = first == 0 && last == model.unitCount();
  if (holdsBoth && model.tiedEmbeddings) sum -= model.paddedVocab() * model.hidden;
  return sum;
}

std::int64_t parameterCount(const Model& model) {
  const std::int64_t copies = model.tiedEmbeddings ? 1 : 2;
  return storedParameters(model, 0, model.unitCount()) - copies * (model.paddedVocab() - model.vocab) * model.hidden;
}

}  // namespace evenkeel
