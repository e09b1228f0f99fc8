// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "core/plan/block_map.h"
#include "runtime/optim/adamw.h"

namespace evenkeel {

/// A block of the map as one rank holds it: `elements` neighbours in each of its flat buffers, from `offset`. Within a slice the
/// split dimension is the outer one: a slice of columns lies column by column. Together with the tensor's full name and shape
/// this is all that initial values, gradient sync, norm and checkpoints need to know of the layout.
struct TensorSlice {
  std::size_t tensor = 0;  // index into BlockMap::tensors
  SliceRange range;        // along the split dimension of the unsplit tensor
  std::int64_t offset = 0, elements = 0;
  bool isFirstHolder = false;  // of all ranks that hold it this one speaks for it: every element of the model once
  bool operator==(const TensorSlice&) const = default;
};

/// The parameters of one rank with their gradients and moments, each in one flat fp32 buffer in the order of the block map, so
/// that the gradients of a holder set are one contiguous region. A weight is a view of them where its slices are neighbours, and
/// autograd then adds to a view of the gradients. Where other pipelines cut a tensor at other places, its slices lie apart: such
/// a weight has memory of its own, which is filled after every update and emptied before every sync.
class Parameters {
 public:
  /// Draws the initial values: element i of a tensor depends on (seed, the tensor's name, i) only, padded rows included. So every
  /// holder draws the same, under any plan. `shard` of a tp group is what the rank is.
  Parameters(const BlockMap& map, int rank, int shard, std::uint64_t seed);

  /// The shard of the weight of that name (core/model: tensorsOf), output features first; undefined if the model has none of it,
  /// for example no biases.
  [[nodiscard]] at::Tensor weight(const std::string& name) const;
  /// By offset, without gaps.
  [[nodiscard]] const std::vector<TensorSlice>& slices() const { return slices_; }
  /// The whole flat buffer of gradients; a region of it is what a collective sums.
  [[nodiscard]] const at::Tensor& gradients() const { return gradients_; }
  [[nodiscard]] const at::Tensor& values() const { return values_; }

  /// Call it after the last backward: then the sum of gradients() over the holders of a region is its gradient. What all shards
  /// of a tp group have computed alike (norms, biases of a sum, positions) is left to the first of them.
  void collectGradients();
  /// Sum of the squared gradients of the slices whose first holder is this rank: over all ranks every element counts once.
  [[nodiscard]] double sumOfOwnSquares() const;
  /// Decays tensors of two dimensions only, then sets the gradients to zero for the next iteration.
  void update(AdamWStep settings);

 private:
  struct Weight {
    at::Tensor tensor;                   // what the ops use
    std::vector<std::size_t> slices;     // in order
    at::Tensor ownValues, ownGradients;  // split dimension first; only if the slices lie apart
  };
  Weight makeWeight(const TensorSpec& tensor, std::vector<std::size_t> slices);
  void fillOwnWeights();

  const BlockMap& map_;
  bool isFirstShard_;
  std::vector<TensorSlice> slices_;
  std::unordered_map<std::string, Weight> weights_;
  at::Tensor values_, gradients_, firstMoments_, secondMoments_;
};

}  // namespace evenkeel
