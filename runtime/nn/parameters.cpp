// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/nn/parameters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <span>

#include "core/base/random.h"

namespace evenkeel {
namespace {

std::span<float> part(const at::Tensor& buffer, std::int64_t offset, std::int64_t elements) {
  return {buffer.data_ptr<float>() + offset, static_cast<std::size_t>(elements)};
}
std::span<float> part(const at::Tensor& buffer, const TensorSlice& slice) { return part(buffer, slice.offset, slice.elements); }

/// Rows or columns [range) of a tensor, the split dimension outside.
void initialise(const TensorSpec& tensor, SliceRange range, std::uint64_t seed, std::span<float> values) {
  switch (tensor.init) {
    case TensorSpec::Init::Zero: std::ranges::fill(values, 0.0F); return;
    case TensorSpec::Init::One: std::ranges::fill(values, 1.0F); return;
    case TensorSpec::Init::Normal: break;
  }
  const CounterRandom random(seed, tensor.name);
  const auto inner = static_cast<std::int64_t>(values.size()) / range.size();
  const bool isColumns = tensor.split == TpSplit::Columns;
  for (std::int64_t i = range.first, next = 0; i < range.last; ++i) {
    for (std::int64_t j = 0; j < inner; ++j, ++next) {
      const std::int64_t index = isColumns ? j * tensor.shape[1] + i : i * inner + j;
      values[static_cast<std::size_t>(next)] =
          static_cast<float>(tensor.deviation * random.normal(static_cast<std::uint64_t>(index)));
    }
  }
}

}  // namespace

Parameters::Parameters(const BlockMap& map, int rank, int shard, std::uint64_t seed) : map_(map), isFirstShard_(shard == 0) {
  std::int64_t total = 0;
  std::map<std::size_t, std::vector<std::size_t>> slicesOf;  // by tensor
  for (const auto& [index, offset] : heldBlocks(map, rank)) {
    const Block& block = map.blocks[index];
    slicesOf[block.tensor].push_back(slices_.size());
    slices_.push_back({.tensor = block.tensor,
                       .range = block.range,
                       .offset = offset,
                       .elements = block.elements,
                       .isFirstHolder = map.holderSets[block.holderSet].front() == rank});
    total += block.elements;
  }
  for (at::Tensor* buffer : {&values_, &gradients_, &firstMoments_, &secondMoments_}) *buffer = at::zeros({total}, at::kFloat);
  for (const TensorSlice& slice : slices_) initialise(map.tensors[slice.tensor], slice.range, seed, part(values_, slice));
  for (auto& [tensor, slices] : slicesOf) {
    std::ranges::sort(slices, {}, [&](std::size_t s) { return slices_[s].range.first; });
    weights_.emplace(map.tensors[tensor].name, makeWeight(map.tensors[tensor], std::move(slices)));
  }
  fillOwnWeights();
}

Parameters::Weight Parameters::makeWeight(const TensorSpec& tensor, std::vector<std::size_t> slices) {
  std::int64_t elements = 0, length = 0;
  bool areNeighbours = true;
  const std::int64_t offset = slices_[slices.front()].offset;
  for (const std::size_t s : slices) {
    assert(length == 0 || slices_[s].range.first == slices_[slices.front()].range.first + length);
    areNeighbours = areNeighbours && slices_[s].offset == offset + elements;
    elements += slices_[s].elements;
    length += slices_[s].range.size();
  }
  const auto shaped = [&](const at::Tensor& flat) {
    if (tensor.shape.size() == 1) return flat;
    const at::Tensor matrix = flat.view({length, elements / length});
    return tensor.split == TpSplit::Columns ? matrix.t() : matrix;
  };
  Weight weight;
  if (!areNeighbours) {
    weight.ownValues = at::empty({elements}, at::kFloat);
    weight.ownGradients = at::zeros({elements}, at::kFloat);
  }
  weight.tensor = shaped(areNeighbours ? values_.narrow(0, offset, elements) : weight.ownValues).detach().requires_grad_();
  weight.tensor.mutable_grad() = shaped(areNeighbours ? gradients_.narrow(0, offset, elements) : weight.ownGradients);
  weight.slices = std::move(slices);
  return weight;
}

at::Tensor Parameters::weight(const std::string& name) const {
  const auto known = weights_.find(name);
  return known == weights_.end() ? at::Tensor() : known->second.tensor;
}

void Parameters::collectGradients() {
  for (const auto& [name, weight] : weights_) {
    if (!weight.ownGradients.defined()) continue;
    const float* from = weight.ownGradients.data_ptr<float>();
    for (const std::size_t s : weight.slices) {
      std::copy_n(from, slices_[s].elements, part(gradients_, slices_[s]).data());
      from += slices_[s].elements;
    }
  }
  if (isFirstShard_) return;
  for (const TensorSlice& slice : slices_) {
    if (map_.tensors[slice.tensor].split == TpSplit::None) std::ranges::fill(part(gradients_, slice), 0.0F);
  }
}

void Parameters::fillOwnWeights() {
  for (const auto& [name, weight] : weights_) {
    if (!weight.ownValues.defined()) continue;
    float* to = weight.ownValues.data_ptr<float>();
    for (const std::size_t s : weight.slices) to = std::ranges::copy(part(values_, slices_[s]), to).out;
    std::ranges::fill(part(weight.ownGradients, 0, weight.ownGradients.numel()), 0.0F);
  }
}

double Parameters::sumOfOwnSquares() const {
  double sum = 0;
  for (const TensorSlice& slice : slices_) {
    if (slice.isFirstHolder) sum += sumOfSquares(part(gradients_, slice));
  }
  return sum;
}

void Parameters::update(AdamWStep settings) {
  const double weightDecay = settings.weightDecay;
  for (const TensorSlice& slice : slices_) {
    settings.weightDecay = map_.tensors[slice.tensor].shape.size() == 2 ? weightDecay : 0.0;
    applyAdamW({.parameters = part(values_, slice),
                .gradients = part(gradients_, slice),
                .firstMoments = part(firstMoments_, slice),
                .secondMoments = part(secondMoments_, slice)},
               settings);
  }
  std::ranges::fill(part(gradients_, 0, gradients_.numel()), 0.0F);
  fillOwnWeights();
}

}  // namespace evenkeel
