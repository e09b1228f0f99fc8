// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/nn/parameters.h"

#include <ATen/ops/zeros.h>

#include <cassert>
#include <span>

#include "core/base/random.h"

namespace evenkeel {
namespace {

std::span<float> part(const at::Tensor& buffer, std::int64_t offset, std::int64_t elements) {
  return {buffer.data_ptr<float>() + offset, static_cast<std::size_t>(elements)};
}

void initialise(const TensorSpec& tensor, std::uint64_t seed, std::span<float> values) {
  switch (tensor.init) {
    case TensorSpec::Init::Zero: std::ranges::fill(values, 0.0F); break;
    case TensorSpec::Init::One: std::ranges::fill(values, 1.0F); break;
    case TensorSpec::Init::Normal: {
      const CounterRandom random(seed, tensor.name);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(tensor.deviation * random.normal(i));
      break;
    }
  }
}

}  // namespace

Parameters::Parameters(const BlockMap& map, int rank, std::uint64_t seed) {
  std::int64_t total = 0;
  const std::vector<HeldBlock> held = heldBlocks(map, rank);
  for (const HeldBlock& one : held) total += map.blocks[one.block].elements;
  for (at::Tensor* buffer : {&values_, &gradients_, &firstMoments_, &secondMoments_}) *buffer = at::zeros({total}, at::kFloat);
  for (const auto& [index, offset] : held) {
    const Block& block = map.blocks[index];
    const TensorSpec& tensor = map.tensors[block.tensor];
    assert(block.elements == tensor.elements());
    segments_.push_back({.offset = offset,
                         .elements = block.elements,
                         .decays = tensor.shape.size() == 2,
                         .counts = map.holderSets[block.holderSet].front() == rank});
    initialise(tensor, seed, part(values_, offset, block.elements));
    at::Tensor weight = values_.narrow(0, offset, block.elements).view(tensor.shape).detach().requires_grad_();
    weight.mutable_grad() = gradients_.narrow(0, offset, block.elements).view(tensor.shape);
    weights_.emplace(tensor.name, std::move(weight));
  }
}

at::Tensor Parameters::weight(const std::string& name) const {
  const auto known = weights_.find(name);
  return known == weights_.end() ? at::Tensor() : known->second;
}

double Parameters::sumOfOwnSquares() const {
  double sum = 0;
  for (const Segment& segment : segments_) {
    if (segment.counts) sum += sumOfSquares(part(gradients_, segment.offset, segment.elements));
  }
  return sum;
}

void Parameters::update(AdamWStep settings) {
  const double weightDecay = settings.weightDecay;
  for (const Segment& segment : segments_) {
    settings.weightDecay = segment.decays ? weightDecay : 0.0;
    applyAdamW({.parameters = part(values_, segment.offset, segment.elements),
                .gradients = part(gradients_, segment.offset, segment.elements),
                .firstMoments = part(firstMoments_, segment.offset, segment.elements),
                .secondMoments = part(secondMoments_, segment.offset, segment.elements)},
               settings);
  }
  std::ranges::fill(part(gradients_, 0, gradients_.numel()), 0.0F);
}

}  // namespace evenkeel
