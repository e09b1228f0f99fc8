// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/train/holder_sync.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace evenkeel {
namespace {

constexpr std::int64_t kElementBytes = 4;

/// Of an all-reduce, or of a reduce-scatter and an all-gather together.
std::int64_t bytesSent(std::int64_t elements, std::size_t ranks) {
  const auto count = static_cast<std::int64_t>(ranks);
  return 2 * (count - 1) * elements * kElementBytes / count;
}

/// The ranks that share blocks with `rank`, directly or through others; sorted, itself among them.
std::vector<int> connectedWith(const BlockMap& map, int rank) {
  std::vector<int> known = {rank};
  for (bool hasGrown = true; hasGrown;) {
    hasGrown = false;
    for (const std::vector<int>& holders : map.holderSets) {
      std::vector<int> merged;
      std::ranges::set_union(known, holders, std::back_inserter(merged));
      const bool touches = merged.size() < known.size() + holders.size();
      if (!touches || merged.size() == known.size()) continue;
      known = std::move(merged);
      hasGrown = true;
    }
  }
  return known;
}

}  // namespace

HolderSync::HolderSync(const BlockMap& map, const Training& training, Comm& comm)
    : comm_(comm), isSharded_(training.zeroStage > 0), isOnePerSet_(training.gradientSync == GradientSync::Block) {
  for (const HeldBlock& held : heldBlocks(map, comm.rank())) elements_ += map.blocks[held.block].elements;
  if (training.gradientSync == GradientSync::Device) groupByDevices(map);
  else groupByHolders(map, training.gradientSync == GradientSync::Tensor);
  for (const Group& group : groups_) {
    cost_.calls += isSharded_ ? 2 : 1;
    cost_.bytes += bytesSent(group.elements, group.ranks.size());
  }
  if (padded_.defined()) cost_.held = padded_.numel() * kElementBytes;
}

void HolderSync::groupByHolders(const BlockMap& map, bool eachBlock) {
  if (!eachBlock) {
    for (const SyncRegion& region : syncRegions(map, comm_.rank()))
      groups_.push_back({map.holderSets[region.holderSet], region.offset, region.elements, {}});
    return;
  }
  for (const HeldBlock& held : heldBlocks(map, comm_.rank())) {
    const Block& block = map.blocks[held.block];
    const std::vector<int>& holders = map.holderSets[block.holderSet];
    if (holders.size() > 1) groups_.push_back({holders, held.offset, block.elements, {}});
  }
}

void HolderSync::groupByDevices(const BlockMap& map) {
  assert(!isSharded_);
  const std::vector<int> ranks = connectedWith(map, comm_.rank());
  if (ranks.size() == 1) return;
  std::int64_t offset = 0, total = 0;
  for (const Block& block : map.blocks) {
    const std::vector<int>& holders = map.holderSets[block.holderSet];
    if (!std::ranges::binary_search(ranks, holders.front())) continue;
    if (std::ranges::binary_search(holders, comm_.rank())) {
      paddedBlocks_.push_back({offset, total, block.elements});
      offset += block.elements;
    }
    total += block.elements;
  }
  padded_ = at::zeros({total}, at::kFloat);
  groups_.push_back({ranks, 0, total, {}});
}

Result<void> HolderSync::connect() {
  for (const Group& group : groups_) {
    if (auto joined = comm_.join(group.ranks); !joined) return joined;
  }
  return {};
}

FlatRange HolderSync::ownPart(const Group& group) const {
  const auto place = std::ranges::find(group.ranks, comm_.rank()) - group.ranks.begin();
  const FlatRange part = partOf(group.elements, static_cast<std::size_t>(place), group.ranks.size());
  return {group.offset + part.first, group.offset + part.last};
}

std::vector<FlatRange> HolderSync::updated() const {
  if (!isSharded_) return {{0, elements_}};
  std::vector<FlatRange> ranges;
  std::int64_t next = 0;  // what lies between the groups has no other holder
  const auto add = [&](FlatRange range) {
    if (range.size() > 0) ranges.push_back(range);
  };
  for (const Group& group : groups_) {
    add({next, group.offset});
    add(ownPart(group));
    next = group.offset + group.elements;
  }
  add({next, elements_});
  return ranges;
}

std::vector<FlatRange> HolderSync::overlappable() const {
  std::vector<FlatRange> ranges;
  if (isSharded_ || !isOnePerSet_) return ranges;
  for (const Group& group : groups_) ranges.push_back({group.offset, group.offset + group.elements});
  return ranges;
}

void HolderSync::start(std::size_t index, const at::Tensor& flat) {
  Group& group = groups_[index];
  assert(!group.sum);
  group.sum = comm_.startAllReduceSum(flat.narrow(0, group.offset, group.elements), group.ranks);
}

void HolderSync::startRest(const at::Tensor& flat) {
  if (isSharded_ || padded_.defined()) return;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].sum) start(g, flat);
  }
}

Result<void> HolderSync::finish(const at::Tensor& flat) {
  if (isSharded_) {
    for (const Group& group : groups_) {
      if (auto done = reduceScatterSum(comm_, flat.narrow(0, group.offset, group.elements), group.ranks); !done) return done;
    }
    return {};
  }
  if (padded_.defined()) {
    padded_.zero_();
    for (const PaddedBlock& block : paddedBlocks_)
      padded_.narrow(0, block.paddedOffset, block.elements).copy_(flat.narrow(0, block.flatOffset, block.elements));
    start(0, padded_);
  }
  for (Group& group : groups_) {
    if (auto done = std::exchange(group.sum, {})->wait(); !done) return done;
  }
  for (const PaddedBlock& block : paddedBlocks_)
    flat.narrow(0, block.flatOffset, block.elements).copy_(padded_.narrow(0, block.paddedOffset, block.elements));
  return {};
}

Result<void> HolderSync::gatherValues(const at::Tensor& flat) {
  if (!isSharded_) return {};
  for (const Group& group : groups_) {
    if (auto done = allGather(comm_, flat.narrow(0, group.offset, group.elements), group.ranks); !done) return done;
  }
  return {};
}

}  // namespace evenkeel
