// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/sync_blocks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace evenkeel {
namespace {

class Blocks {
 public:
  Blocks(const CostModel& model, std::span<const Pipeline> pipelines) : model_(model), pipelines_(pipelines) {}

  std::vector<SyncBlock> run() {
    if (model_.training().gradientSync == GradientSync::Device) findConnectedSets();
    else findBlocks();
    return std::move(blocks_);
  }

 private:
  [[nodiscard]] bool hasTied() const { return model_.tiedParameters(1) > 0; }

  /// Unsplit parameters and tensors of a unit, the tied embedding left out.
  void addUnit(int unit, SyncBlock& block) const {
    const UnitKind kind = model_.model().unitKind(unit);
    block.parameters += model_.parameters(kind, 1);
    block.tensors += static_cast<int>(opsOf(kind).size());
    if ((kind == UnitKind::Embedding || kind == UnitKind::Head) && hasTied()) block.parameters -= model_.tiedParameters(1);
  }

  void findBlocks() {
    std::set<int> cuts;
    for (const Pipeline& pipeline : pipelines_) {
      for (const Stage& stage : pipeline.stages) cuts.insert(stage.units.first);
    }
    cuts.insert(model_.model().unitCount());
    std::vector<std::size_t> at(pipelines_.size(), 0);
    for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
      SyncBlock block{.firstUnit = *cut};
      for (int unit = *cut; unit < *std::next(cut); ++unit) addUnit(unit, block);
      for (std::size_t p = 0; p < pipelines_.size(); ++p) {
        while (pipelines_[p].stages[at[p]].units.last <= *cut) ++at[p];
        block.holders.push_back({p, at[p]});
      }
      blocks_.push_back(std::move(block));
    }
    if (!hasTied()) return;
    SyncBlock tied{.parameters = model_.tiedParameters(1), .tensors = 1, .firstUnit = 0, .holders = {}};
    for (std::size_t p = 0; p < pipelines_.size(); ++p) {
      tied.holders.push_back({p, 0});
      if (pipelines_[p].stages.size() > 1) tied.holders.push_back({p, pipelines_[p].stages.size() - 1});
    }
    blocks_.push_back(std::move(tied));
  }

  /// Stages are connected where they share a unit or hold the two ends of a tied embedding.
  void findConnectedSets() {
    std::vector<int> root(static_cast<std::size_t>(model_.model().unitCount()));
    std::iota(root.begin(), root.end(), 0);
    const auto rootOf = [&](int unit) {
      while (root[static_cast<std::size_t>(unit)] != unit) unit = root[static_cast<std::size_t>(unit)];
      return unit;
    };
    const auto connect = [&](int a, int b) {
      root[static_cast<std::size_t>(std::max(rootOf(a), rootOf(b)))] = std::min(rootOf(a), rootOf(b));
    };
    for (const Pipeline& pipeline : pipelines_) {
      for (const Stage& stage : pipeline.stages) {
        for (int unit = stage.units.first + 1; unit < stage.units.last; ++unit) connect(stage.units.first, unit);
      }
    }
    if (hasTied()) connect(0, model_.model().unitCount() - 1);
    std::map<int, SyncBlock> sets;
    for (int unit = 0; unit < model_.model().unitCount(); ++unit) addUnit(unit, sets[rootOf(unit)]);
    if (hasTied()) sets[rootOf(0)].parameters += model_.tiedParameters(1);
    for (std::size_t p = 0; p < pipelines_.size(); ++p) {
      for (std::size_t s = 0; s < pipelines_[p].stages.size(); ++s)
        sets[rootOf(pipelines_[p].stages[s].units.first)].holders.push_back({p, s});
    }
    for (auto& [first, block] : sets) {
      block.tensors = 1;
      blocks_.push_back(std::move(block));
    }
  }

  const CostModel& model_;
  std::span<const Pipeline> pipelines_;
  std::vector<SyncBlock> blocks_;
};

}  // namespace

std::vector<SyncBlock> syncBlocks(const CostModel& model, std::span<const Pipeline> pipelines) {
  return Blocks(model, pipelines).run();
}

}  // namespace evenkeel
