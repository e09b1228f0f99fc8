// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "core/plan/block_map.h"
#include "runtime/optim/adamw.h"

namespace evenkeel {

/// The parameters of one rank with their gradients and moments, each in one flat fp32 buffer in the order of the block map, so
/// that the gradients of a holder set are one contiguous region. Weights are views; autograd adds to views of the gradients.
class Parameters {
 public:
  /// Draws the initial values: element i of a tensor depends on (seed, the tensor's name, i) only, padded rows included. So every
  /// holder draws the same, under any plan. Every block of the rank is a whole tensor (tp 1).
  Parameters(const BlockMap& map, int rank, std::uint64_t seed);

  /// The weight of that name (core/model: tensorsOf), undefined if the model has none of it, for example no biases.
  [[nodiscard]] at::Tensor weight(const std::string& name) const;
  /// The whole flat buffer of gradients; a region of it is what a collective sums.
  [[nodiscard]] const at::Tensor& gradients() const { return gradients_; }
  [[nodiscard]] const at::Tensor& values() const { return values_; }

  /// Sum of the squared gradients of the blocks whose first holder is this rank: over all ranks every element counts once.
  [[nodiscard]] double sumOfOwnSquares() const;
  /// Decays tensors of two dimensions only, then sets the gradients to zero for the next iteration.
  void update(AdamWStep settings);

 private:
  struct Segment {
    std::int64_t offset = 0, elements = 0;
    bool decays = false;  // two dimensions
    bool counts = false;  // this rank is its first holder
  };
  std::vector<Segment> segments_;
  std::unordered_map<std::string, at::Tensor> weights_;
  at::Tensor values_, gradients_, firstMoments_, secondMoments_;
};

}  // namespace evenkeel
