// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/train/holder_sync.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace evenkeel {
namespace {

constexpr std::int64_t kElementBytes = 4;

/// Of a reduce-scatter, or of an all-gather.
std::int64_t bytesSent(std::int64_t elements, std::size_t ranks, std::int64_t elementBytes) {
  const auto count = static_cast<std::int64_t>(ranks);
  return (count - 1) * elements * elementBytes / count;
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

HolderSync::HolderSync(const BlockMap& map, const Plan& plan, Comm& comm, at::Device place)
    : comm_(comm), zeroStage_(plan.training.zeroStage), sharedUnitOf_(map.tensors.size(), -1) {
  for (const HeldBlock& held : heldBlocks(map, comm.rank())) elements_ += map.blocks[held.block].elements;
  if (zeroStage_ >= 2) findShared(map, plan);
  if (plan.training.gradientSync == GradientSync::Device) groupByDevices(map, place);
  else groupByHolders(map, plan.training.gradientSync == GradientSync::Tensor);
  countCost(plan.training.precision);
}

/// All tensors but a tied embedding whose two units are in two stages of a pipeline: its sums could only leave a stage when the other
/// end of the pipeline has come to the same micro-batch.
void HolderSync::findShared(const BlockMap& map, const Plan& plan) {
  const RankPlace place = rankPlaces(plan)[static_cast<std::size_t>(comm_.rank())];
  const UnitRange own = plan.pipelines[place.pipeline].stages[place.stage].units;
  std::unordered_map<std::string, std::size_t> indexOf;
  for (std::size_t t = 0; t < map.tensors.size(); ++t) indexOf.emplace(map.tensors[t].name, t);
  const bool isEndless = std::ranges::all_of(plan.pipelines, [](const Pipeline& pipeline) { return pipeline.stages.size() == 1; });
  std::vector<std::vector<std::size_t>> units;
  std::vector<int> uses(map.tensors.size(), 0);
  for (int unit = 0; unit < plan.model.unitCount(); ++unit) {
    auto& tensors = units.emplace_back();
    for (const TensorSpec& tensor : tensorsOf(plan.model, unit)) {
      tensors.push_back(indexOf.at(tensor.name));
      ++uses[tensors.back()];
    }
  }
  for (int unit = plan.model.unitCount() - 1; unit >= 0; --unit) {
    std::erase_if(units[static_cast<std::size_t>(unit)], [&](std::size_t tensor) { return uses[tensor] > 1 && !isEndless; });
    for (const std::size_t tensor : units[static_cast<std::size_t>(unit)]) sharedUnitOf_[tensor] = unit;
  }
  sharedUnits_.assign(units.begin() + own.first, units.begin() + own.last);
}

void HolderSync::groupByHolders(const BlockMap& map, bool eachBlock) {
  std::optional<std::pair<std::size_t, int>> last;  // holder set, shared unit
  for (const HeldBlock& held : heldBlocks(map, comm_.rank())) {
    const Block& block = map.blocks[held.block];
    const std::vector<int>& holders = map.holderSets[block.holderSet];
    if (holders.size() < 2) continue;
    const std::pair key{block.holderSet, sharedUnitOf_[block.tensor]};
    if (eachBlock || last != key) groups_.push_back({holders, {held.offset, held.offset}, key.second >= 0});
    groups_.back().range.last += block.elements;
    last = key;
  }
}

void HolderSync::groupByDevices(const BlockMap& map, at::Device place) {
  assert(!isSharded());
  const std::vector<int> ranks = connectedWith(map, comm_.rank());
  if (ranks.size() == 1) return;
  std::int64_t offset = 0, total = 0;
  for (const Block& block : map.blocks) {
    const std::vector<int>& holders = map.holderSets[block.holderSet];
    if (!std::ranges::binary_search(ranks, holders.front())) continue;
    if (std::ranges::binary_search(holders, comm_.rank())) {
      paddedBlocks_.push_back({{offset, offset + block.elements}, total});
      offset += block.elements;
    }
    total += block.elements;
  }
  padded_ = at::zeros({total}, at::TensorOptions(at::kFloat).device(place));
  groups_.push_back({ranks, {0, total}});
}

void HolderSync::countCost(Precision precision) {
  for (const Group& group : groups_) {
    // An all-reduce is a reduce-scatter and an all-gather of the gradients; ZeRO gathers the values.
    cost_.calls += isSharded() && !group.isShared ? 2 : 1;
    if (!group.isShared) cost_.bytes += bytesSent(group.range.size(), group.ranks.size(), kElementBytes);
    cost_.bytes += bytesSent(group.range.size(), group.ranks.size(), isSharded() ? bytesOf(precision) : kElementBytes);
  }
  if (padded_.defined()) cost_.held = padded_.numel() * kElementBytes;
}

std::vector<Line> HolderSync::lines() const {
  std::vector<Line> lines;
  if (!isSharded()) return lines;
  for (const Group& group : groups_) {
    for (const Line& line : ringLines(group.ranks, comm_.rank())) lines.push_back(line);
  }
  return lines;
}

Result<void> HolderSync::connect() {
  for (const Group& group : groups_) {
    if (auto joined = comm_.join(group.ranks); !joined) return joined;
  }
  return {};
}

FlatRange HolderSync::ownPart(const Group& group) const {
  const auto place = std::ranges::find(group.ranks, comm_.rank()) - group.ranks.begin();
  const FlatRange part = partOf(group.range.size(), static_cast<std::size_t>(place), group.ranks.size());
  return {group.range.first + part.first, group.range.first + part.last};
}

Ownership HolderSync::ownership() const {
  if (!isSharded()) return {.updated = {{0, elements_}}, .sharedUnits = {}};
  Ownership ownership{.updated = {}, .sharedUnits = sharedUnits_};
  std::int64_t next = 0;  // what lies between the groups has no other holder
  const auto add = [&](FlatRange range) {
    if (range.size() > 0) ownership.updated.push_back(range);
  };
  for (const Group& group : groups_) {
    add({next, group.range.first});
    add(ownPart(group));
    next = group.range.last;
  }
  add({next, elements_});
  return ownership;
}

std::vector<FlatRange> HolderSync::overlappable() const {
  std::vector<FlatRange> ranges;
  if (isSharded() || padded_.defined()) return ranges;
  for (const Group& group : groups_) ranges.push_back(group.range);
  return ranges;
}

void HolderSync::start(std::size_t index, const Parameters& parameters) {
  Group& group = groups_[index];
  assert(!group.sum);
  group.sum = comm_.startAllReduceSum(padded_.defined() ? padded_ : parameters.gradients(group.range), group.ranks);
}

Result<void> HolderSync::startRest(const Parameters& parameters) {
  if (isSharded()) {
    for (const Group& group : groups_) {
      if (group.isShared) continue;
      if (auto done = reduceScatterSum(comm_, parameters.gradients(group.range), group.ranks); !done) return done;
    }
    return {};
  }
  if (padded_.defined()) {
    padded_.zero_();
    for (const PaddedBlock& block : paddedBlocks_)
      padded_.narrow(0, block.paddedOffset, block.flat.size()).copy_(parameters.gradients(block.flat));
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].sum) start(g, parameters);
  }
  return {};
}

Result<void> HolderSync::finish(const Parameters& parameters) {
  for (Group& group : groups_) {
    if (!group.sum) continue;  // with ZeRO
    if (auto done = std::exchange(group.sum, {})->wait(); !done) return done;
  }
  for (const PaddedBlock& block : paddedBlocks_)
    parameters.gradients(block.flat).copy_(padded_.narrow(0, block.paddedOffset, block.flat.size()));
  return {};
}

Result<void> HolderSync::gatherValues(const at::Tensor& flat) {
  if (!isSharded()) return {};
  for (const Group& group : groups_) {
    if (auto done = allGather(comm_, flat.narrow(0, group.range.first, group.range.size()), group.ranks); !done) return done;
  }
  return {};
}

}  // namespace evenkeel
