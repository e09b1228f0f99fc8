// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace evenkeel {

/// Where a rank stands in the plan: which shard of which replica of which stage it is.
struct RankPlace {
  std::size_t pipeline = 0, stage = 0;
  int replica = 0;  // of dp
  int shard = 0;    // of tp
  bool operator==(const RankPlace&) const = default;
};

/// The place of every rank, by rank: rank r is the r-th of plan.usedDevices(). The shape must be valid.
[[nodiscard]] std::vector<RankPlace> rankPlaces(const Plan& plan);

/// Half-open range of rows or columns of a tensor.
struct SliceRange {
  std::int64_t first = 0, last = 0;
  bool operator==(const SliceRange&) const = default;
  [[nodiscard]] std::int64_t size() const { return last - first; }
};

/// What shard `shard` of `tp` holds of a tensor, along its split dimension (dimension 0 where it is not split). Key and value
/// heads are replicated when tp exceeds them: then neighbouring shards hold the same head.
[[nodiscard]] SliceRange shardOf(const Model& model, const TensorSpec& tensor, int tp, int shard);

/// The largest part of a parameter tensor whose elements all have the same holders.
struct Block {
  std::size_t tensor = 0;  // index into BlockMap::tensors
  SliceRange range;        // along the tensor's split dimension
  std::int64_t elements = 0;
  std::size_t holderSet = 0;  // index into BlockMap::holderSets
  bool operator==(const Block&) const = default;
};

/// Who holds which part of which parameter (resources/docs/design.md 6): every tensor is cut at all tp boundaries that any
/// pipeline uses; blocks with the same holders are neighbours, so that one fused collective a holder set sums their gradients.
/// A tied embedding is one tensor; its holders are the ranks of both ends.
struct BlockMap {
  std::vector<TensorSpec> tensors;           // of the whole model, each once, in the order of the units
  std::vector<std::vector<int>> holderSets;  // sorted ranks; each set once, in the order of its first tensor
  std::vector<Block> blocks;                 // by holder set, then tensor, then range; they partition every tensor
};

/// The same on every rank that has the same plan. The shape must be valid. O(pipelines x units x tp).
[[nodiscard]] BlockMap blockMap(const Plan& plan);

/// A block in the flat buffers of one rank; offset in elements.
struct HeldBlock {
  std::size_t block = 0;
  std::int64_t offset = 0;
  bool operator==(const HeldBlock&) const = default;
};

/// The blocks of a rank in the order of the map, packed without gaps.
[[nodiscard]] std::vector<HeldBlock> heldBlocks(const BlockMap& map, int rank);

/// A contiguous part of a rank's flat gradient buffer that all ranks of a holder set sum with one collective.
struct SyncRegion {
  std::size_t holderSet = 0;
  std::int64_t offset = 0, elements = 0;
  bool operator==(const SyncRegion&) const = default;
};

/// The regions of a rank that somebody else holds too. All ranks meet the sets that they share in the same order, so that
/// blocking collectives in this order cannot deadlock.
[[nodiscard]] std::vector<SyncRegion> syncRegions(const BlockMap& map, int rank);

}  // namespace evenkeel
