// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/precision.h"
#include "core/plan/block_map.h"
#include "runtime/checkpoint/model_state.h"
#include "runtime/comm/ring.h"
#include "runtime/device/compute_device.h"
#include "runtime/optim/adamw.h"

namespace evenkeel {

/// A block of the map as one rank holds it: `elements` neighbours in each of its flat buffers, from `offset`. Within a slice the
/// split dimension is the outer one: a slice of columns lies column by column. Together with the tensor's full name and shape
/// this is all that initial values, gradient sync, norm and checkpoints need to know of the layout.
struct TensorSlice {
  std::size_t tensor = 0;  // index into BlockMap::tensors
  SliceRange range;        // along the split dimension of the unsplit tensor
  std::int64_t offset = 0, elements = 0;
  bool isSplit = false;        // tensor parallelism divides the tensor
  bool decays = false;         // it has two dimensions
  bool isFirstHolder = false;  // of all ranks that hold it this one speaks for it: every element of the model once
  bool operator==(const TensorSlice&) const = default;
};

/// A part of one state that a rank holds: neighbours of a tensor from element `first`, the split dimension outside. A view: what is written
/// there is the state.
struct StatePiece {
  std::size_t tensor = 0;  // index into BlockMap::tensors
  std::int64_t first = 0;
  at::Tensor values;           // one dimension, fp32
  bool isFirstHolder = false;  // of all ranks that hold it this one speaks for it
};

/// How the tensors of ops and between ops are stored.
[[nodiscard]] at::ScalarType scalarTypeOf(Precision precision);

/// What a rank does for the other holders of its parameters, and they for it (ZeRO).
struct Ownership {
  std::vector<FlatRange> updated;  // of the flat buffers: what this rank updates
  /// ZeRO-2: the gradients of these units (tensors of the block map, the units of the stage in order) leave it with every
  /// micro-batch. Empty: it holds all of them until the step ends.
  std::vector<std::vector<std::size_t>> sharedUnits;
};

/// The parameters of one rank with their gradients and moments, each in one flat buffer in the order of the block map, so that
/// the gradients of a holder set are one contiguous region. Gradients and moments are fp32 at any precision: autograd adds those
/// of bf16 and fp16 weights to them. At these precisions what is updated has an fp32 master copy, of which the weights are the
/// rounded image. A weight is a view of the flat buffers where its slices are neighbours, and autograd then adds to a view of the
/// gradients. Where other pipelines cut a tensor at other places, its slices lie apart: such a weight has memory of its own,
/// which is filled after every update and emptied before every sync.
/// With ZeRO-2 autograd adds to one small buffer for all units in turn, the bucket, and the flat one holds no more than the sums of
/// this rank's parts and what is not shared.
class Parameters {
 public:
  /// Draws the initial values: element i of a tensor depends on (seed, the tensor's name, i) only, padded rows included. So every
  /// holder draws the same, under any plan. `shard` of a tp group is what the rank is.
  Parameters(const BlockMap& map, int rank, int shard, std::uint64_t seed, Precision precision = Precision::Fp32,
             const ComputeDevice& device = {});
  /// The same where this rank updates some ranges of the flat buffers only: it holds masters and moments for no others.
  Parameters(const BlockMap& map, int rank, int shard, std::uint64_t seed, Precision precision, const Ownership& ownership,
             const ComputeDevice& device = {});

  /// The shard of the weight of that name (core/model: tensorsOf), output features first; undefined if the model has none of it,
  /// for example no biases.
  [[nodiscard]] at::Tensor weight(const std::string& name) const;
  /// By offset, without gaps.
  [[nodiscard]] const std::vector<TensorSlice>& slices() const { return slices_; }
  /// The gradients of a range of the flat buffers, none of which is shared: what a collective sums.
  [[nodiscard]] at::Tensor gradients(FlatRange range) const;
  /// In the training precision.
  [[nodiscard]] const at::Tensor& values() const { return values_; }

  /// All that this rank holds of a state, in the order of its slices: over the first holders of all ranks every element stands
  /// once. The weights are those of the masters where there are any. Call takeOverMasters(), then finishUpdate() after pieces
  /// were written.
  [[nodiscard]] std::vector<StatePiece> pieces(ModelState state) const;

  /// Where autograd adds the gradients of a shared slice (index into slices()), its elements in their order, zero before the backward
  /// of each of its units and to be zero again behind it. Undefined: the slice is not shared.
  [[nodiscard]] at::Tensor bucketOf(std::size_t slice) const;
  /// The bytes of the bucket of all shared slices.
  [[nodiscard]] std::int64_t bucketBytes() const;

  /// Call it once for every range of what is not shared, after the last backward through its weights: then the sum of gradients() over its holders is
  /// its gradient. What all shards of a tp group have computed alike (norms, biases of a sum, positions) is left to the first of
  /// them. A range begins and ends where slices do.
  void collectGradients(FlatRange range);
  /// Sum of the squared gradients of the parts that this rank counts: over all ranks every element counts once.
  [[nodiscard]] double sumOfOwnSquares() const;
  /// Updates the parts of this rank; decays tensors of two dimensions only. Then come the values of other ranks, if there are
  /// any, and finishUpdate().
  void update(AdamWStep settings);
  /// Rounds the masters of this rank's parts to its values; nothing without masters.
  void takeOverMasters();
  /// Sets the gradients to zero for the next iteration and fills the weights that have memory of their own.
  void finishUpdate();

  /// Of a slice, what this rank updates: neighbours in the flat buffers and in those of the moments.
  struct Part {
    std::size_t slice = 0;
    std::int64_t offset = 0, elements = 0;  // in the flat buffers
    std::int64_t momentOffset = 0;          // of masters too
    std::int64_t gradientOffset = 0;        // in ownGradients()
    bool counts = false;  // in the norm of the gradient
  };
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  /// What parts() are updated from.
  [[nodiscard]] const at::Tensor& ownGradients() const { return gradients_; }
  [[nodiscard]] const at::Tensor& firstMoments() const { return firstMoments_; }
  [[nodiscard]] const at::Tensor& secondMoments() const { return secondMoments_; }

  /// Memory of all of this.
  struct Size {
    std::int64_t weights = 0, gradients = 0;  // bytes; with the weights and gradients that lie apart, without the bucket
    std::int64_t optimizer = 0;               // moments and masters
  };
  [[nodiscard]] Size size() const;

 private:
  struct Weight {
    at::Tensor tensor;                   // what the ops use
    std::vector<std::size_t> slices;     // in order
    at::Tensor ownValues, ownGradients;  // split dimension first; only if the slices lie apart
  };
  static constexpr std::int64_t kShared = -1;
  void layOutGradients(const Ownership& ownership);
  Weight makeWeight(const TensorSpec& tensor, std::vector<std::size_t> slices);
  [[nodiscard]] at::Tensor zeros(std::int64_t elements, at::ScalarType type = at::kFloat) const;
  bool isFirstShard_;
  at::Device place_;
  bool isHost_;
  std::vector<TensorSlice> slices_;
  std::vector<std::int64_t> gradientOffsets_;  // by slice: in gradients_, or kShared
  std::vector<std::int64_t> bucketOffsets_;    // by slice: in bucket_, of those that are shared
  std::vector<at::Tensor> ownGradients_;  // by slice: of weights with memory of their own, else undefined
  std::vector<Part> parts_;
  std::unordered_map<std::string, Weight> weights_;
  at::Tensor values_, gradients_, firstMoments_, secondMoments_;
  at::Tensor bucket_;   // undefined where nothing is shared
  at::Tensor masters_;  // undefined in fp32
};

}  // namespace evenkeel
