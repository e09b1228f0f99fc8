// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/block_map.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

namespace evenkeel {
namespace {

/// Length of the dimension that tp cuts; of dimension 0 where it cuts none.
std::int64_t splitLength(const TensorSpec& tensor) { return tensor.shape[tensor.split == TpSplit::Columns ? 1 : 0]; }

bool holdsKeysOrValues(const TensorSpec& tensor) {
  return tensor.name.find(".attention.key.") != std::string::npos || tensor.name.find(".attention.value.") != std::string::npos;
}

std::size_t stageOfUnit(const Pipeline& pipeline, int unit) {
  const auto stage =
      std::ranges::find_if(pipeline.stages, [&](const Stage& s) { return unit >= s.units.first && unit < s.units.last; });
  assert(stage != pipeline.stages.end());
  return static_cast<std::size_t>(stage - pipeline.stages.begin());
}

/// A rank holds [range) of the tensor at hand.
struct Holding {
  SliceRange range;
  int rank = 0;
};

class BlockMapBuilder {
 public:
  explicit BlockMapBuilder(const Plan& plan) : plan_(plan) {
    const std::vector<DeviceId> devices = plan.usedDevices();
    for (std::size_t r = 0; r < devices.size(); ++r) rankOf_.emplace(devices[r], static_cast<int>(r));
  }

  BlockMap build() {
    for (int unit = 0; unit < plan_.model.unitCount(); ++unit) collect(unit);
    for (std::size_t t = 0; t < map_.tensors.size(); ++t) cut(t);
    std::ranges::stable_sort(map_.blocks, {}, &Block::holderSet);  // tensors and ranges are in order already
    return std::move(map_);
  }

 private:
  void collect(int unit) {
    for (TensorSpec& tensor : tensorsOf(plan_.model, unit)) {
      const auto [known, isNew] = indexOf_.emplace(tensor.name, map_.tensors.size());
      if (isNew) {
        holdings_.emplace_back();
        map_.tensors.push_back(tensor);
      }
      for (const Pipeline& pipeline : plan_.pipelines) {
        const Stage& stage = pipeline.stages[stageOfUnit(pipeline, unit)];
        for (std::size_t d = 0; d < stage.devices.size(); ++d) {
          const int shard = static_cast<int>(d) % stage.tp;
          holdings_[known->second].push_back({shardOf(plan_.model, tensor, stage.tp, shard), rankOf_.at(stage.devices[d])});
        }
      }
    }
  }

  void cut(std::size_t t) {
    const TensorSpec& tensor = map_.tensors[t];
    const std::int64_t length = splitLength(tensor), elementsOfSlice = tensor.elements() / length;
    std::set<std::int64_t> boundaries;
    for (const Holding& holding : holdings_[t]) boundaries.insert({holding.range.first, holding.range.last});
    assert(*boundaries.begin() == 0 && *boundaries.rbegin() == length);
    for (auto first = boundaries.begin(), last = std::next(first); last != boundaries.end(); ++first, ++last) {
      std::set<int> holders;  // a set: one rank may hold a tied embedding through both of its units
      for (const Holding& holding : holdings_[t]) {
        if (holding.range.first <= *first && holding.range.last >= *last) holders.insert(holding.rank);
      }
      const std::size_t set = setOf({holders.begin(), holders.end()});
      // Neighbours with the same holders are one block: a boundary only counts where the holders change.
      Block* previous = map_.blocks.empty() ? nullptr : &map_.blocks.back();
      if (previous != nullptr && previous->tensor == t && previous->holderSet == set) {
        previous->range.last = *last;
        previous->elements += (*last - *first) * elementsOfSlice;
      } else {
        map_.blocks.push_back({t, {*first, *last}, (*last - *first) * elementsOfSlice, set});
      }
    }
  }

  std::size_t setOf(std::vector<int> ranks) {
    const auto [known, isNew] = setIndex_.emplace(std::move(ranks), map_.holderSets.size());
    if (isNew) map_.holderSets.push_back(known->first);
    return known->second;
  }

  const Plan& plan_;
  std::unordered_map<DeviceId, int> rankOf_;
  std::unordered_map<std::string, std::size_t> indexOf_;
  std::vector<std::vector<Holding>> holdings_;  // by tensor
  std::map<std::vector<int>, std::size_t> setIndex_;
  BlockMap map_;
};

}  // namespace

std::vector<RankPlace> rankPlaces(const Plan& plan) {
  std::map<DeviceId, RankPlace> places;  // sorted as usedDevices()
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (std::size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const Stage& stage = plan.pipelines[p].stages[s];
      for (std::size_t d = 0; d < stage.devices.size(); ++d) {
        const int index = static_cast<int>(d);
        places[stage.devices[d]] = {.pipeline = p, .stage = s, .replica = index / stage.tp, .shard = index % stage.tp};
      }
    }
  }
  std::vector<RankPlace> byRank;
  for (const auto& [device, place] : places) byRank.push_back(place);
  return byRank;
}

SliceRange shardOf(const Model& model, const TensorSpec& tensor, int tp, int shard) {
  assert(tp >= 1 && shard >= 0 && shard < tp);
  const std::int64_t length = splitLength(tensor);
  if (tensor.split == TpSplit::None) return {0, length};
  const int parts = holdsKeysOrValues(tensor) ? std::min(tp, model.kvHeads) : tp;
  assert(length % parts == 0 && tp % parts == 0);
  const std::int64_t width = length / parts;
  const std::int64_t part = shard / (tp / parts);
  return {part * width, (part + 1) * width};
}

BlockMap blockMap(const Plan& plan) { return BlockMapBuilder(plan).build(); }

std::vector<HeldBlock> heldBlocks(const BlockMap& map, int rank) {
  std::vector<HeldBlock> held;
  std::int64_t offset = 0;
  for (std::size_t b = 0; b < map.blocks.size(); ++b) {
    if (!std::ranges::binary_search(map.holderSets[map.blocks[b].holderSet], rank)) continue;
    held.push_back({b, offset});
    offset += map.blocks[b].elements;
  }
  return held;
}

std::vector<SyncRegion> syncRegions(const BlockMap& map, int rank) {
  std::vector<SyncRegion> regions;
  for (const HeldBlock& held : heldBlocks(map, rank)) {
    const Block& block = map.blocks[held.block];
    if (map.holderSets[block.holderSet].size() < 2) continue;
    if (regions.empty() || regions.back().holderSet != block.holderSet) regions.push_back({block.holderSet, held.offset, 0});
    regions.back().elements += block.elements;
  }
  return regions;
}

}  // namespace evenkeel
