// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/memory.h"

#include <algorithm>

#include "core/cost/stage_time.h"
#include "core/cost/sync.h"

namespace evenkeel {
namespace {

/// Incoming and outgoing activation and gradient.
constexpr std::int64_t kBoundaryBuffers = 4;

std::int64_t ceilDivide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

class PlanMemory {
 public:
  PlanMemory(const CostModel& model, std::span<const Pipeline> pipelines)
      : model_(model), pipelines_(pipelines), holders_(static_cast<std::size_t>(model.model().unitCount()), 0) {
    for (const Pipeline& pipeline : pipelines) {
      for (const Stage& stage : pipeline.stages) {
        for (int unit = stage.units.first; unit < stage.units.last; ++unit) holders_[static_cast<std::size_t>(unit)] += stage.dp;
      }
    }
    if (model.training().gradientSync == GradientSync::Device) padded_ = paddedParameters(model, pipelines);
  }

  MemoryByReplica run() const {
    MemoryByReplica all(pipelines_.size());
    for (std::size_t p = 0; p < pipelines_.size(); ++p) {
      for (std::size_t s = 0; s < pipelines_[p].stages.size(); ++s) all[p].push_back(stageMemory(p, s));
    }
    return all;
  }

 private:
  std::vector<MemoryUse> stageMemory(std::size_t p, std::size_t s) const {
    const Pipeline& pipeline = pipelines_[p];
    const Stage& stage = pipeline.stages[s];
    DeviceMemory device;
    countParameters(stage, device);
    if (!padded_.empty()) device.gradientParameters = std::max(device.gradientParameters, padded_[p][s]);
    device.inFlight = inFlightMicroBatches(s, pipeline.stages.size(), pipeline.microBatchCount());

    const std::vector<UnitGroup> groups = unitGroups(model_.model(), stage);
    const std::vector<int> shares = replicaShares(stage, pipeline.microBatch, pipeline.microBatch);
    std::vector<MemoryUse> replicas;
    for (int r = 0; r < stage.dp; ++r) {
      device.kind = model_.kindOf(stage.devices[static_cast<std::size_t>(r * stage.tp)]);
      device.saved = device.transient = device.boundary = {};
      if (const int share = shares[static_cast<std::size_t>(r)]; share > 0) {
        const OpCosts& costs = model_.opCosts(device.kind, stage.tp, share);
        for (const UnitGroup& group : groups) {
          const UnitCost unit = unitCost(costs, group.kind, group.recomputed);
          device.saved += std::int64_t{group.count} * unit.saved;
          device.transient = std::max(device.transient, unit.transient);
        }
        if (pipeline.stages.size() > 1) device.boundary = costs[static_cast<std::size_t>(Op::Norm1)].boundary;
      }
      replicas.push_back(memoryUse(model_, device));
    }
    return replicas;
  }

  void countParameters(const Stage& stage, DeviceMemory& device) const {
    const std::array<std::int64_t, 4> ofKind = {
        model_.parameters(UnitKind::Embedding, stage.tp), model_.parameters(UnitKind::Attention, stage.tp),
        model_.parameters(UnitKind::Mlp, stage.tp), model_.parameters(UnitKind::Head, stage.tp)};
    for (int unit = stage.units.first; unit < stage.units.last; ++unit) {
      const std::int64_t count = ofKind[static_cast<std::size_t>(model_.model().unitKind(unit))];
      device.parameters += count;
      device.shardedParameters += ceilDivide(count, holders_[static_cast<std::size_t>(unit)]);
    }
    if (stage.units.first == 0 && stage.units.last == model_.model().unitCount()) {
      const std::int64_t tied = model_.tiedParameters(stage.tp);
      device.parameters -= tied;
      device.shardedParameters -= tied / holders_.front();
    }
    device.gradientParameters = device.parameters;
  }

  const CostModel& model_;
  std::span<const Pipeline> pipelines_;
  std::vector<int> holders_;                       // of each unit: devices with the same slice of it
  std::vector<std::vector<std::int64_t>> padded_;  // [pipeline][stage], with device-wise sync
};

}  // namespace

std::int64_t gradientBytesPerParameter() { return 4; }
std::int64_t optimizerBytesPerParameter(Precision precision) { return precision == Precision::Fp32 ? 8 : 12; }

MemoryUse memoryUse(const CostModel& model, const DeviceMemory& device) {
  const Training& training = model.training();
  MemoryUse use;
  use.weights = {device.parameters * bytesOf(training.precision)};
  use.gradients = {(training.zeroStage >= 2 ? device.shardedParameters : device.gradientParameters) *
                   gradientBytesPerParameter()};
  use.gradients += std::int64_t{model.runtime().gradientCopies} * Bytes{device.parameters * gradientBytesPerParameter()};
  use.optimizer = {(training.zeroStage >= 1 ? device.shardedParameters : device.parameters) *
                   optimizerBytesPerParameter(training.precision)};
  use.activations = std::int64_t{device.inFlight} * device.saved;
  use.transient = device.transient + kBoundaryBuffers * device.boundary;
  const double slack = model.runtime().allocatorSlack * static_cast<double>((use.activations + use.transient).value);
  use.reserved = model.reservedOf(device.kind) + Bytes{static_cast<std::int64_t>(slack)};
  use.capacity = model.capacityOf(device.kind);
  return use;
}

int inFlightMicroBatches(std::size_t stage, std::size_t stageCount, std::int64_t microBatches) {
  return static_cast<int>(std::min(static_cast<std::int64_t>(stageCount - stage), microBatches));
}

MemoryByReplica memoryOf(const CostModel& model, std::span<const Pipeline> pipelines) {
  return PlanMemory(model, pipelines).run();
}

Bytes lackOf(const MemoryUse& use) { return std::max(Bytes{}, use.total() - use.capacity); }

std::size_t fullestReplica(const std::vector<MemoryUse>& replicas) {
  const auto fullest = std::ranges::max_element(replicas, {}, [](const MemoryUse& use) { return use.total() - use.capacity; });
  return static_cast<std::size_t>(fullest - replicas.begin());
}

}  // namespace evenkeel
