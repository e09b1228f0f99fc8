// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/nn/parameters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <span>

#include "core/base/random.h"
#include "runtime/optim/adamw_tensors.h"

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

at::ScalarType scalarTypeOf(Precision precision) {
  switch (precision) {
    case Precision::Fp32: return at::kFloat;
    case Precision::Bf16: return at::kBFloat16;
    case Precision::Fp16: return at::kHalf;
  }
  assert(false);
  return at::kFloat;
}

Parameters::Parameters(const BlockMap& map, int rank, int shard, std::uint64_t seed, Precision precision, const ComputeDevice& device)
    : Parameters(map, rank, shard, seed, precision, Ownership{.updated = {{0, std::numeric_limits<std::int64_t>::max()}}, .sharedUnits = {}}, device) {
  for (Part& part : parts_) part.counts = slices_[part.slice].isFirstHolder;
}

Parameters::Parameters(const BlockMap& map, int rank, int shard, std::uint64_t seed, Precision precision,
                       const Ownership& ownership, const ComputeDevice& device)
    : isFirstShard_(shard == 0), place_(device.place), isHost_(device.isHost) {
  std::int64_t total = 0;
  std::map<std::size_t, std::vector<std::size_t>> slicesOf;  // by tensor
  for (const auto& [index, offset] : heldBlocks(map, rank)) {
    const Block& block = map.blocks[index];
    slicesOf[block.tensor].push_back(slices_.size());
    slices_.push_back({.tensor = block.tensor,
                       .range = block.range,
                       .offset = offset,
                       .elements = block.elements,
                       .isSplit = map.tensors[block.tensor].split != TpSplit::None,
                       .decays = map.tensors[block.tensor].shape.size() == 2,
                       .isFirstHolder = map.holderSets[block.holderSet].front() == rank});
    total += block.elements;
  }
  ownGradients_.resize(slices_.size());
  std::int64_t moments = 0;
  for (const FlatRange& range : ownership.updated) {
    for (std::size_t s = 0; s < slices_.size(); ++s) {
      const std::int64_t first = std::max(range.first, slices_[s].offset),
                         last = std::min(range.last, slices_[s].offset + slices_[s].elements);
      if (first >= last) continue;
      parts_.push_back({.slice = s, .offset = first, .elements = last - first, .momentOffset = moments, .counts = true});
      moments += last - first;
    }
  }
  values_ = zeros(total, scalarTypeOf(precision));
  layOutGradients(ownership);
  for (at::Tensor* buffer : {&firstMoments_, &secondMoments_}) *buffer = zeros(moments);
  if (precision == Precision::Fp32 && isHost_) {
    for (const TensorSlice& slice : slices_) initialise(map.tensors[slice.tensor], slice.range, seed, part(values_, slice));
  } else {
    if (precision != Precision::Fp32) masters_ = zeros(moments);
    auto own = parts_.begin();
    for (std::size_t s = 0; s < slices_.size(); ++s) {
      const TensorSlice& slice = slices_[s];
      const at::Tensor initial = at::empty({slice.elements}, at::kFloat);
      initialise(map.tensors[slice.tensor], slice.range, seed, part(initial, 0, slice.elements));
      values_.narrow(0, slice.offset, slice.elements).copy_(initial);
      for (; masters_.defined() && own != parts_.end() && own->slice == s; ++own)
        masters_.narrow(0, own->momentOffset, own->elements).copy_(initial.narrow(0, own->offset - slice.offset, own->elements));
    }
  }
  for (auto& [tensor, slices] : slicesOf) {
    std::ranges::sort(slices, {}, [&](std::size_t s) { return slices_[s].range.first; });
    weights_.emplace(map.tensors[tensor].name, makeWeight(map.tensors[tensor], std::move(slices)));
  }
  finishUpdate();
}

void Parameters::layOutGradients(const Ownership& ownership) {
  gradientOffsets_.resize(slices_.size(), 0);
  bucketOffsets_.resize(slices_.size(), kShared);
  // A tensor of two units (a tied embedding) has one place for both, so before what only one unit has.
  std::map<std::size_t, int> uses;
  for (const auto& unit : ownership.sharedUnits) {
    for (const std::size_t tensor : unit) ++uses[tensor];
  }
  std::int64_t common = 0, bucket = 0;
  const auto place = [&](std::size_t tensor, std::int64_t& next) {
    std::vector<std::size_t> slices;
    for (std::size_t s = 0; s < slices_.size(); ++s) {
      if (slices_[s].tensor == tensor) slices.push_back(s);
    }
    std::ranges::sort(slices, {}, [&](std::size_t s) { return slices_[s].range.first; });
    for (const std::size_t s : slices) {
      gradientOffsets_[s] = kShared;
      bucketOffsets_[s] = next;
      next += slices_[s].elements;
    }
  };
  for (const auto& [tensor, count] : uses) {
    if (count > 1) place(tensor, common);
  }
  for (const auto& unit : ownership.sharedUnits) {
    const bool hasCommon = std::ranges::any_of(unit, [&](std::size_t tensor) { return uses.at(tensor) > 1; });
    std::int64_t next = hasCommon ? common : 0;
    for (const std::size_t tensor : unit) {
      if (uses.at(tensor) == 1) place(tensor, next);
    }
    bucket = std::max(bucket, next);
  }
  if (bucket > 0) bucket_ = zeros(bucket);

  std::int64_t own = 0;
  for (std::size_t s = 0; s < slices_.size(); ++s) {
    if (gradientOffsets_[s] == kShared) continue;
    gradientOffsets_[s] = own;
    own += slices_[s].elements;
  }
  for (Part& part : parts_) {
    const std::int64_t whole = gradientOffsets_[part.slice];
    if (whole == kShared) {
      part.gradientOffset = own;
      own += part.elements;
    } else {
      part.gradientOffset = whole + part.offset - slices_[part.slice].offset;
    }
  }
  gradients_ = zeros(own);
}

at::Tensor Parameters::zeros(std::int64_t elements, at::ScalarType type) const {
  return at::zeros({elements}, at::TensorOptions(type).device(place_));
}

at::Tensor Parameters::gradients(FlatRange range) const {
  for (std::size_t s = 0; s < slices_.size(); ++s) {
    const TensorSlice& slice = slices_[s];
    if (range.first < slice.offset || range.first >= slice.offset + slice.elements) continue;
    assert(gradientOffsets_[s] != kShared);
    return gradients_.narrow(0, gradientOffsets_[s] + range.first - slice.offset, range.size());
  }
  assert(range.size() == 0);
  return gradients_.narrow(0, 0, 0);
}

at::Tensor Parameters::bucketOf(std::size_t slice) const {
  return gradientOffsets_[slice] == kShared ? bucket_.narrow(0, bucketOffsets_[slice], slices_[slice].elements) : at::Tensor();
}

std::int64_t Parameters::bucketBytes() const { return bucket_.defined() ? static_cast<std::int64_t>(bucket_.nbytes()) : 0; }

Parameters::Weight Parameters::makeWeight(const TensorSpec& tensor, std::vector<std::size_t> slices) {
  std::int64_t elements = 0, length = 0;
  bool areNeighbours = true;
  const std::size_t first = slices.front();
  const std::int64_t offset = slices_[first].offset;
  const bool isShared = gradientOffsets_[first] == kShared;
  for (const std::size_t s : slices) {
    assert(length == 0 || slices_[s].range.first == slices_[first].range.first + length);
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
  if (!areNeighbours) weight.ownValues = at::empty({elements}, values_.options());
  if (!areNeighbours && !isShared) {
    weight.ownGradients = zeros(elements);
    std::int64_t next = 0;
    for (const std::size_t s : slices) {
      ownGradients_[s] = weight.ownGradients.narrow(0, next, slices_[s].elements);
      next += slices_[s].elements;
    }
  }
  weight.tensor = shaped(areNeighbours ? values_.narrow(0, offset, elements) : weight.ownValues).detach().requires_grad_();
  weight.tensor.mutable_grad() = shaped(isShared        ? bucket_.narrow(0, bucketOffsets_[first], elements)
                                        : areNeighbours ? gradients_.narrow(0, gradientOffsets_[first], elements)
                                                        : weight.ownGradients);
  weight.slices = std::move(slices);
  return weight;
}

at::Tensor Parameters::weight(const std::string& name) const {
  const auto known = weights_.find(name);
  return known == weights_.end() ? at::Tensor() : known->second.tensor;
}

std::vector<StatePiece> Parameters::pieces(ModelState state) const {
  std::vector<StatePiece> pieces;
  const auto firstOf = [](const TensorSlice& slice) { return slice.range.first * (slice.elements / slice.range.size()); };
  if (state == ModelState::Weights && !masters_.defined()) {
    for (const TensorSlice& slice : slices_)
      pieces.push_back({slice.tensor, firstOf(slice), values_.narrow(0, slice.offset, slice.elements), slice.isFirstHolder});
    return pieces;
  }
  const at::Tensor& moments = state == ModelState::Weights        ? masters_
                              : state == ModelState::FirstMoments ? firstMoments_
                                                                  : secondMoments_;
  for (const Part& part : parts_) {
    const TensorSlice& slice = slices_[part.slice];
    pieces.push_back({slice.tensor, firstOf(slice) + part.offset - slice.offset, moments.narrow(0, part.momentOffset, part.elements), part.counts});
  }
  return pieces;
}

void Parameters::collectGradients(FlatRange range) {
  for (std::size_t s = 0; s < slices_.size(); ++s) {
    const TensorSlice& slice = slices_[s];
    if (slice.offset < range.first || slice.offset >= range.last || gradientOffsets_[s] == kShared) continue;
    const at::Tensor gradient = gradients_.narrow(0, gradientOffsets_[s], slice.elements);
    if (!isFirstShard_ && !slice.isSplit) gradient.zero_();
    else if (ownGradients_[s].defined()) gradient.copy_(ownGradients_[s]);
  }
}

void Parameters::finishUpdate() {
  gradients_.zero_();
  for (const auto& [name, weight] : weights_) {
    if (!weight.ownValues.defined()) continue;
    std::int64_t next = 0;
    for (const std::size_t s : weight.slices) {
      weight.ownValues.narrow(0, next, slices_[s].elements).copy_(values_.narrow(0, slices_[s].offset, slices_[s].elements));
      next += slices_[s].elements;
    }
    if (weight.ownGradients.defined()) weight.ownGradients.zero_();
  }
}

double Parameters::sumOfOwnSquares() const {
  if (!isHost_) {
    const at::Tensor sum = zeros(1, at::kDouble);
    for (const Part& own : parts_) {
      if (own.counts) sum.add_(sumOfSquares(gradients_.narrow(0, own.gradientOffset, own.elements)));
    }
    return sum.item<double>();
  }
  double sum = 0;
  for (const Part& own : parts_) {
    if (own.counts) sum += sumOfSquares(part(gradients_, own.gradientOffset, own.elements));
  }
  return sum;
}

void Parameters::update(AdamWStep settings) {
  const double weightDecay = settings.weightDecay;
  for (const Part& own : parts_) {
    settings.weightDecay = slices_[own.slice].decays ? weightDecay : 0.0;
    if (!isHost_) {
      applyAdamW(AdamWTensors{.parameters = masters_.defined() ? masters_.narrow(0, own.momentOffset, own.elements)
                                                               : values_.narrow(0, own.offset, own.elements),
                              .gradients = gradients_.narrow(0, own.gradientOffset, own.elements),
                              .firstMoments = firstMoments_.narrow(0, own.momentOffset, own.elements),
                              .secondMoments = secondMoments_.narrow(0, own.momentOffset, own.elements)},
                 settings);
      continue;
    }
    applyAdamW(AdamWState{.parameters =
                    masters_.defined() ? part(masters_, own.momentOffset, own.elements) : part(values_, own.offset, own.elements),
                .gradients = part(gradients_, own.gradientOffset, own.elements),
                .firstMoments = part(firstMoments_, own.momentOffset, own.elements),
                .secondMoments = part(secondMoments_, own.momentOffset, own.elements)},
               settings);
  }
  takeOverMasters();
}

void Parameters::takeOverMasters() {
  if (!masters_.defined()) return;
  for (const Part& own : parts_)
    values_.narrow(0, own.offset, own.elements).copy_(masters_.narrow(0, own.momentOffset, own.elements));
}

Parameters::Size Parameters::size() const {
  const auto bytes = [](const at::Tensor& tensor) { return tensor.defined() ? static_cast<std::int64_t>(tensor.nbytes()) : 0; };
  Size size{.weights = bytes(values_),
            .gradients = bytes(gradients_),
            .optimizer = bytes(firstMoments_) + bytes(secondMoments_) + bytes(masters_)};
  for (const auto& [name, weight] : weights_) {
    size.weights += bytes(weight.ownValues);
    size.gradients += bytes(weight.ownGradients);
  }
  return size;
}

}  // namespace evenkeel
