// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/memory.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/cost/stage_time.h"
#include "core/cost/sync.h"

namespace evenkeel {
namespace {

/// Incoming and outgoing activation and gradient.
constexpr std::int64_t kBoundaryBuffers = 4;
/// What our worker holds beside tensors as soon as it computes (buffers of the BLAS, pages of the libraries, small tensors): 0 to 18 MB over the
/// ranks of bench_runtime_memory, more with more work, up to that.
constexpr double kOwnBeside = 18e6, kOwnBesideShare = 0.4;
/// The pool of large blocks keeps at most so much more than the tensors have had (runtime/device/memory_meter.cpp).
constexpr double kOwnPool = 1.0 / 32;

bool isOurWorker(const CostModel& model, int kind) { return model.runtime().holdsFlatBuffers && model.typeOfKind(kind).runsHere; }

std::int64_t ceilDivide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// What tp divides of a unit, and would be held in one piece at tp 1.
std::int64_t splitParameters(const Model& model, int unit) {
  std::int64_t sum = 0;
  for (const TensorSpec& tensor : tensorsOf(model, unit)) {
    if (tensor.split != TpSplit::None) sum += tensor.elements();
  }
  return sum;
}

class PlanMemory {
 public:
  PlanMemory(const CostModel& model, std::span<const Pipeline> pipelines)
      : model_(model), pipelines_(pipelines), holders_(static_cast<std::size_t>(model.model().unitCount()), 0) {
    isCut_.resize(holders_.size(), false);
    bool isMixed = false;
    const int tp = pipelines.front().stages.front().tp;
    for (const Pipeline& pipeline : pipelines) {
      isEndless_ = isEndless_ && pipeline.stages.size() == 1;
      for (const Stage& stage : pipeline.stages) {
        isMixed = isMixed || stage.tp != tp;
        isCut_[static_cast<std::size_t>(stage.units.first)] = true;
        for (int unit = stage.units.first; unit < stage.units.last; ++unit) holders_[static_cast<std::size_t>(unit)] += stage.dp;
      }
    }
    if (isMixed && model.runtime().holdsFlatBuffers) findTps();
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
    const Bytes arriving{arrivingParameters(stage) * gradientBytesPerParameter()};
    if (!padded_.empty()) device.paddedParameters = padded_[p][s];
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
      if (isOurWorker(model_, device.kind)) device.transient += extraBoundaries(p, s, device.inFlight) * device.boundary;
      replicas.push_back(memoryUse(model_, device));
      MemoryUse& use = replicas.back();
      use.activations -= smallerInFlight(p, s, r, device);
      // when the ring turns activations are gone: it counts where there were few, most of all on a replica without samples
      if (isOurWorker(model_, device.kind)) use.transient = std::max(use.transient, arriving - use.activations);
    }
    return replicas;
  }

  /// Outputs stay until their gradients have come, and gradients until the stage before is known to have taken them.
  [[nodiscard]] std::int64_t extraBoundaries(std::size_t p, std::size_t s, int inFlight) const {
    const std::int64_t outputs = s + 1 < pipelines_[p].stages.size() ? inFlight : 0, gradients = s > 0 ? inFlight + 1 : 0;
    return std::max<std::int64_t>(0, outputs + gradients + 2 - kBoundaryBuffers);
  }

  /// Where all micro-batches are in flight at once, a smaller last one is among them.
  [[nodiscard]] Bytes smallerInFlight(std::size_t p, std::size_t s, int replica, const DeviceMemory& device) const {
    const Pipeline& pipeline = pipelines_[p];
    const std::int64_t count = pipeline.microBatchCount();
    const int last = pipeline.samplesOf(count - 1);
    if (count == 1 || device.inFlight < count || last == pipeline.microBatch || device.saved == Bytes{}) return {};
    const Stage& stage = pipeline.stages[s];
    const int share = replicaShares(stage, pipeline.microBatch, last)[static_cast<std::size_t>(replica)];
    Bytes saved;
    if (share > 0) {
      const OpCosts& costs = model_.opCosts(device.kind, stage.tp, share);
      for (const UnitGroup& group : unitGroups(model_.model(), stage)) saved += std::int64_t{group.count} * unitCost(costs, group.kind, group.recomputed).saved;
    }
    return std::max(Bytes{}, device.saved - saved);
  }

  void countParameters(const Stage& stage, DeviceMemory& device) const {
    const std::array<std::int64_t, 4> ofKind = {
        model_.parameters(UnitKind::Embedding, stage.tp), model_.parameters(UnitKind::Attention, stage.tp),
        model_.parameters(UnitKind::Mlp, stage.tp), model_.parameters(UnitKind::Head, stage.tp)};
    const int unitCount = model_.model().unitCount();
    const std::int64_t tied = model_.tiedParameters(stage.tp);
    for (int unit = stage.units.first; unit < stage.units.last; ++unit) {
      const UnitKind kind = model_.model().unitKind(unit);
      std::int64_t count = ofKind[static_cast<std::size_t>(kind)];
      device.parameters += count;
      device.shardedParameters += ceilDivide(count, holders_[static_cast<std::size_t>(unit)]);
      const bool isEnd = kind == UnitKind::Embedding || kind == UnitKind::Head;
      // The parts of an embedding are neighbours where no other tensor has its holders.
      const bool isOneTensor = isEnd && (stage.units.size() == 1 || (tied > 0 && !isEndless_));
      if (!isOneTensor && isCutByOthers(unit, stage.tp)) device.apartParameters += split_[static_cast<std::size_t>(kind)] / stage.tp;
      if (isEnd && !isEndless_) count -= tied;
      const std::int64_t holders = holders_[static_cast<std::size_t>(unit)];
      device.unitParameters = std::max(device.unitParameters, ceilDivide(count * (3 * holders - 2), holders));
    }
    const bool isFirst = stage.units.first == 0, isLast = stage.units.last == unitCount;
    if (isFirst && isLast) {
      device.parameters -= tied;
      device.shardedParameters -= tied / holders_.front();
      if (isEndless_ && isCutByOthers(0, stage.tp)) device.apartParameters -= tied;
    }
    if ((isFirst || isLast) && !isEndless_) device.wholeParameters = tied;
  }

  /// What a ring of ZeRO-1 brings of another holder at once: a part of neighbouring units with the same holders, or of one where tensors are summed
  /// apart.
  [[nodiscard]] std::int64_t arrivingParameters(const Stage& stage) const {
    const Training& training = model_.training();
    if (training.zeroStage != 1) return 0;
    std::int64_t most = 0, alike = 0;
    for (int unit = stage.units.first; unit < stage.units.last; ++unit) {
      const auto u = static_cast<std::size_t>(unit);
      if (isCut_[u] || training.gradientSync == GradientSync::Tensor) alike = 0;
      std::int64_t count = model_.parameters(model_.model().unitKind(unit), stage.tp);
      if (stage.units.first == 0 && unit == model_.model().unitCount() - 1) count -= model_.tiedParameters(stage.tp);  // it has the embedding's
      if (holders_[u] > 1) alike += ceilDivide(count, holders_[u]);
      most = std::max(most, alike);
    }
    return most;
  }

  /// A cut of another pipeline lies inside of what each rank of a tp group holds.
  [[nodiscard]] bool isCutByOthers(int unit, int tp) const {
    return !tps_.empty() && std::ranges::any_of(tps_[static_cast<std::size_t>(unit)], [&](int other) { return tp % other != 0; });
  }

  void findTps() {
    tps_.resize(holders_.size());
    for (const Pipeline& pipeline : pipelines_) {
      for (const Stage& stage : pipeline.stages) {
        for (int unit = stage.units.first; unit < stage.units.last; ++unit) tps_[static_cast<std::size_t>(unit)].insert(stage.tp);
      }
    }
    const int head = model_.model().unitCount() - 1;
    if (model_.model().tiedEmbeddings) {  // one tensor, cut wherever one of its ends is
      tps_.front().insert(tps_[static_cast<std::size_t>(head)].begin(), tps_[static_cast<std::size_t>(head)].end());
      tps_[static_cast<std::size_t>(head)] = tps_.front();
    }
    for (const int unit : {0, 1, 2, head}) split_[static_cast<std::size_t>(model_.model().unitKind(unit))] = splitParameters(model_.model(), unit);
  }

  const CostModel& model_;
  std::span<const Pipeline> pipelines_;
  std::vector<int> holders_;                       // of each unit: devices with the same slice of it
  std::vector<bool> isCut_;                        // of each unit: it is the first one of a stage
  bool isEndless_ = true;                          // no pipeline has its two ends in two stages
  std::vector<std::set<int>> tps_;                 // of each unit: all that it is held with; empty where all are alike
  std::array<std::int64_t, 4> split_{};            // by kind of unit: what tp divides
  std::vector<std::vector<std::int64_t>> padded_;  // [pipeline][stage], with device-wise sync
};

}  // namespace

std::int64_t gradientBytesPerParameter() { return 4; }
std::int64_t optimizerBytesPerParameter(Precision precision) { return precision == Precision::Fp32 ? 8 : 12; }

MemoryUse memoryUse(const CostModel& model, const DeviceMemory& device) {
  const Training& training = model.training();
  const std::int64_t weight = bytesOf(training.precision), gradient = gradientBytesPerParameter();
  MemoryUse use;
  use.weights = {(device.parameters + device.apartParameters) * weight};
  if (training.zeroStage >= 2) use.gradients = {(device.shardedParameters + device.wholeParameters) * gradient};
  else use.gradients = {(device.parameters + device.apartParameters + device.paddedParameters) * gradient};
  use.gradients += std::int64_t{model.runtime().gradientCopies} * Bytes{device.parameters * gradient};
  use.optimizer = {(training.zeroStage >= 1 ? device.shardedParameters : device.parameters) *
                   optimizerBytesPerParameter(training.precision)};
  use.activations = std::int64_t{device.inFlight} * device.saved;
  use.transient = device.transient + kBoundaryBuffers * device.boundary;
  if (training.zeroStage >= 2) use.transient += Bytes{device.unitParameters * gradient};
  const bool isOurs = isOurWorker(model, device.kind);
  const auto work = static_cast<double>((use.activations + use.transient).value);
  const double slack = isOurs ? std::min(kOwnBesideShare * work, kOwnBeside) + kOwnPool * work : model.runtime().allocatorSlack * work;
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
