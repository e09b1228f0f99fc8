// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/stage_table.h"

#include <algorithm>

namespace evenkeel {
namespace {

std::int64_t ceilDivide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

StageTable::StageTable(const CostModel& model, int kind, int tp, std::int64_t samples, const Recomputing& recomputing)
    : model_(model),
      kind_(kind),
      unitCount_(model.model().unitCount()),
      costs_(model.opCosts(kind, tp, samples)),
      tied_(model.tiedParameters(tp)) {
  for (int k = 0; k < 4; ++k) parameters_[static_cast<std::size_t>(k)] = model.parameters(static_cast<UnitKind>(k), tp);
  levels_.push_back(levelOf(recomputing.perStage ? OpSet{} : recomputing.everywhere));
  if (recomputing.perStage) addLevels();
}

StageTable::Level StageTable::levelOf(OpSet ops) const {
  Level level{ops, {}, {{}}};
  for (int k = 0; k < 4; ++k) level.units[static_cast<std::size_t>(k)] = unitCost(costs_, static_cast<UnitKind>(k), ops);
  for (int unit = 0; unit < unitCount_; ++unit) {
    const UnitCost& cost = level.units[static_cast<std::size_t>(model_.model().unitKind(unit))];
    level.timeBefore.push_back(level.timeBefore.back() + cost.forward + cost.backward);
  }
  return level;
}

void StageTable::addLevels() {
  while (true) {
    const Level& now = levels_.back();
    OpSet best;
    double bestRate = 0;
    for (const UnitKind kind : {UnitKind::Attention, UnitKind::Mlp}) {
      const std::span<const Op> ops = opsOf(kind);
      const UnitCost& unit = now.units[static_cast<std::size_t>(kind)];
      for (std::size_t first = 0; first < ops.size(); ++first) {
        OpSet more = now.ops;
        for (std::size_t last = first; last < ops.size(); ++last) {
          more.set(static_cast<std::size_t>(ops[last]));
          const UnitCost changed = unitCost(costs_, kind, more);
          const auto freed = static_cast<double>((unit.saved - changed.saved).value);
          const double rate = freed / std::max(1e-12, (changed.backward - unit.backward).value);
          if (freed > 0 && rate > bestRate) {
            bestRate = rate;
            best = more;
          }
        }
      }
    }
    if (bestRate == 0) return;
    levels_.push_back(levelOf(best));
  }
}

std::array<int, 4> StageTable::counts(UnitRange units) const {
  const int firstBlock = std::max(units.first, 1), lastBlock = std::min(units.last, unitCount_ - 1);
  std::array<int, 4> count{};
  count[static_cast<std::size_t>(UnitKind::Embedding)] = units.first == 0 && units.last > 0 ? 1 : 0;
  count[static_cast<std::size_t>(UnitKind::Head)] = units.last == unitCount_ && units.first < unitCount_ ? 1 : 0;
  if (lastBlock > firstBlock) {
    // Attention blocks are the odd units, MLP blocks the even ones from 2 on.
    count[static_cast<std::size_t>(UnitKind::Attention)] = lastBlock / 2 - firstBlock / 2;
    count[static_cast<std::size_t>(UnitKind::Mlp)] = (lastBlock - 1) / 2 - (firstBlock - 1) / 2;
  }
  return count;
}

Seconds StageTable::forward(std::span<const LevelRange> parts) const {
  Seconds sum;
  for (const LevelRange& part : parts) {
    const std::array<int, 4> count = counts(part.units);
    for (std::size_t k = 0; k < 4; ++k)
      sum += static_cast<double>(count[k]) * levels_[static_cast<std::size_t>(part.level)].units[k].forward;
  }
  return sum;
}

Seconds StageTable::backward(std::span<const LevelRange> parts) const {
  Seconds sum;
  for (const LevelRange& part : parts) {
    const std::array<int, 4> count = counts(part.units);
    for (std::size_t k = 0; k < 4; ++k)
      sum += static_cast<double>(count[k]) * levels_[static_cast<std::size_t>(part.level)].units[k].backward;
  }
  return sum;
}

Seconds StageTable::time(LevelRange part) const {
  const std::vector<Seconds>& before = levels_[static_cast<std::size_t>(part.level)].timeBefore;
  return before[static_cast<std::size_t>(part.units.last)] - before[static_cast<std::size_t>(part.units.first)];
}

Seconds StageTable::layerTime() const {
  const auto& units = levels_.front().units;
  const UnitCost& attention = units[static_cast<std::size_t>(UnitKind::Attention)];
  const UnitCost& mlp = units[static_cast<std::size_t>(UnitKind::Mlp)];
  return attention.forward + attention.backward + mlp.forward + mlp.backward;
}

bool StageTable::fits(std::span<const LevelRange> parts, int inFlight, int holders, bool alone) const {
  return lackOf(memory(parts, inFlight, holders, alone)) == Bytes{};
}

MemoryUse StageTable::memory(std::span<const LevelRange> parts, int inFlight, int holders, bool alone) const {
  DeviceMemory device{.kind = kind_};
  for (const LevelRange& part : parts) {
    const std::array<int, 4> count = counts(part.units);
    for (std::size_t k = 0; k < 4; ++k) {
      if (count[k] == 0) continue;
      const UnitCost& unit = levels_[static_cast<std::size_t>(part.level)].units[k];
      device.parameters += count[k] * parameters_[k];
      device.shardedParameters += count[k] * ceilDivide(parameters_[k], holders);
      device.saved += std::int64_t{count[k]} * unit.saved;
      device.transient = std::max(device.transient, unit.transient);
    }
  }
  if (alone) {  // holds both ends of a tied embedding, once
    device.parameters -= tied_;
    device.shardedParameters -= tied_ / holders;
  } else {
    device.boundary = costs_[static_cast<std::size_t>(Op::Norm1)].boundary;
  }
  device.inFlight = inFlight;
  return memoryUse(model_, device);
}

int StageTable::lastUnit(int first, int most, int level, Seconds pace, int inFlight, int holders, bool alone) const {
  const std::vector<Seconds>& before = levels_[static_cast<std::size_t>(level)].timeBefore;
  const auto inTime =
      std::upper_bound(before.begin() + first, before.begin() + most + 1, before[static_cast<std::size_t>(first)] + pace);
  int low = first, high = static_cast<int>(inTime - before.begin()) - 1;
  if (high <= first) return first;
  const auto fitsUntil = [&](int last) {
    const LevelRange part{{first, last}, level};
    return fits({&part, 1}, inFlight, holders, alone);
  };
  if (fitsUntil(high)) return high;
  --high;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (fitsUntil(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

const StageTable& StageTables::of(int kind, int tp, std::int64_t samples) {
  const std::tuple key{kind, tp, samples};
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = tables_.find(key); found != tables_.end()) return *found->second;
  }
  auto table = std::make_unique<StageTable>(model_, kind, tp, samples, recomputing_);
  const std::unique_lock lock(mutex_);
  return *tables_.emplace(key, std::move(table)).first->second;
}

}  // namespace evenkeel
