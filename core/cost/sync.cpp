// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/sync.h"

#include <algorithm>
#include <cassert>
#include <map>

#include "core/cost/memory.h"
#include "core/cost/stage_time.h"
#include "core/cost/sync_blocks.h"
#include "core/cost/sync_rings.h"
#include "core/profile/analytic_profile.h"

namespace evenkeel {
namespace {

class Sync {
 public:
  /// Without `ends` all stages end at once, and nothing overlaps.
  Sync(const CostModel& model, std::span<const Pipeline> pipelines, const StageEnds* ends)
      : model_(model),
        pipelines_(pipelines),
        ends_(ends),
        blocks_(syncBlocks(model, pipelines)),
        rings_(model, pipelines, blocks_) {}

  SyncTime run() const {
    SyncTime time;
    Seconds end;
    for (const auto& [stage, queue] : queues()) {
      Seconds busy;
      for (const Job& job : queue) busy += job.duration;
      time.busiest = std::max(time.busiest, busy);
      if (!queue.empty()) end = std::max(end, queue.back().end());
    }
    time.sync = std::max(Seconds{}, end - slowestPipeline());
    time.optimizer = optimizerTime();
    return time;
  }

  SyncQueue slowestQueue() const {
    SyncQueue slowest;
    const std::vector<Job>* last = nullptr;
    StageRef of{};
    const auto all = queues();
    for (const auto& [stage, queue] : all) {
      if (queue.empty() || (last != nullptr && queue.back().end() <= last->back().end())) continue;
      last = &queue;
      of = stage;
    }
    if (last == nullptr) return slowest;
    slowest.begin = last->front().begin;
    slowest.end = last->back().end();
    for (const Job& job : *last) {
      const SyncBlock& block = blocks_[job.block];
      const int slices = rings_.slices(block);
      const std::int64_t held = slices / stageOf(pipelines_, of).tp;
      SyncPart part = rings_.slice(block, slices);
      part.parameters = held * block.parameters / slices;
      part.bytes = held * part.bytes;
      part.time = job.duration;
      slowest.parts.push_back(part);
    }
    return slowest;
  }

  /// Of a reduce-scatter and a gather the first half.
  StageEnds exchanges() const {
    const double whole = static_cast<double>(gradientBytesPerParameter() + bytesOf(model_.training().precision));
    StageEnds times;
    for (const Pipeline& pipeline : pipelines_) times.emplace_back(pipeline.stages.size());
    for (const SyncBlock& block : blocks_) {
      const int slices = rings_.slices(block);
      const Seconds ring = rings_.slice(block, slices).time;
      for (const StageRef& ref : block.holders)
        times[ref.pipeline][ref.stage] += (slices / stageOf(pipelines_, ref).tp * static_cast<double>(gradientBytesPerParameter()) / whole) * ring;
    }
    return times;
  }

  std::vector<std::vector<std::pair<Seconds, Seconds>>> spans() const {
    std::vector<std::vector<std::pair<Seconds, Seconds>>> spans;
    for (const Pipeline& pipeline : pipelines_) spans.emplace_back(pipeline.stages.size());
    for (const auto& [stage, queue] : queues()) {
      if (!queue.empty()) spans[stage.pipeline][stage.stage] = {queue.front().begin, queue.back().end()};
    }
    return spans;
  }

 private:
  /// A ring in the queue of one device.
  struct Job {
    std::size_t block = 0;
    Seconds begin, duration;
    [[nodiscard]] Seconds end() const { return begin + duration; }
  };

  /// The rings of each stage's devices, one after the other in the order in which they are ready.
  std::map<StageRef, std::vector<Job>> queues() const {
    std::map<StageRef, std::vector<Job>> queues;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const SyncBlock& block = blocks_[b];
      const int slices = rings_.slices(block);
      const Seconds ring = rings_.slice(block, slices).time;
      if (ring == Seconds{}) continue;
      Seconds ready;
      for (const StageRef& ref : block.holders) ready = std::max(ready, gradientsOf(ref, block));
      // A rank holds so many slices.
      for (const StageRef& ref : block.holders)
        queues[ref].push_back({b, ready, static_cast<double>(slices / stageOf(pipelines_, ref).tp) * ring});
    }
    for (auto& [stage, queue] : queues) {
      std::ranges::stable_sort(queue, {}, &Job::begin);
      for (std::size_t i = 1; i < queue.size(); ++i) queue[i].begin = std::max(queue[i].begin, queue[i - 1].end());
    }
    return queues;
  }

  /// When the stage's last backward has left the block behind.
  Seconds gradientsOf(const StageRef& ref, const SyncBlock& block) const {
    if (ends_ == nullptr) return {};
    const Seconds end = (*ends_)[ref.pipeline][ref.stage];
    if (!mayOverlap() || block.firstUnit <= stageOf(pipelines_, ref).units.first) return end;
    const Pipeline& pipeline = pipelines_[ref.pipeline];
    const int samples = pipeline.samplesOf(pipeline.microBatchCount() - 1);
    return end - backwardTime(model_, pipeline, ref.stage, {stageOf(pipelines_, ref).units.first, block.firstUnit}, samples);
  }

  [[nodiscard]] bool mayOverlap() const {
    const Training& training = model_.training();
    return model_.runtime().syncsBesideBackward && training.gradientSync != GradientSync::Device && training.zeroStage == 0;
  }

  Seconds slowestPipeline() const {
    Seconds slowest;
    if (ends_ == nullptr) return slowest;
    for (const std::vector<Seconds>& pipeline : *ends_) {
      for (const Seconds end : pipeline) slowest = std::max(slowest, end);
    }
    return slowest;
  }

  /// Bound by memory traffic; ZeRO shards it over the pipelines' replicas of the stage's least held unit.
  Seconds optimizerTime() const {
    const MemoryByReplica memory = memoryOf(model_, pipelines_);
    Seconds slowest;
    for (std::size_t p = 0; p < pipelines_.size(); ++p) {
      for (std::size_t s = 0; s < pipelines_[p].stages.size(); ++s) {
        const Stage& stage = pipelines_[p].stages[s];
        for (int r = 0; r < stage.dp; ++r) {
          const DeviceType& type = model_.typeOfKind(model_.kindOf(stage.devices[static_cast<std::size_t>(r * stage.tp)]));
          const DeviceClass& c = deviceClassOf(type);
          const double updated = memory[p][s][static_cast<std::size_t>(r)].optimizer /
                                 Bytes{optimizerBytesPerParameter(model_.training().precision)};
          const BytesPerSecond bandwidth = type.memoryBandwidth * (c.bandwidthEfficiency * type.speed);
          slowest = std::max(slowest, Seconds{updated * c.optimizerTraffic / bandwidth.value});
        }
      }
    }
    return slowest;
  }

  const CostModel& model_;
  std::span<const Pipeline> pipelines_;
  const StageEnds* ends_;
  std::vector<SyncBlock> blocks_;
  SyncRings rings_;
};

}  // namespace

SyncTime syncTime(const CostModel& model, std::span<const Pipeline> pipelines, const StageEnds& ends) {
  return Sync(model, pipelines, &ends).run();
}
SyncTime syncTime(const CostModel& model, std::span<const Pipeline> pipelines) { return Sync(model, pipelines, nullptr).run(); }

SyncQueue slowestSync(const CostModel& model, std::span<const Pipeline> pipelines, const StageEnds& ends) {
  return Sync(model, pipelines, &ends).slowestQueue();
}
SyncQueue slowestSync(const CostModel& model, std::span<const Pipeline> pipelines) {
  return Sync(model, pipelines, nullptr).slowestQueue();
}

std::vector<std::vector<std::pair<Seconds, Seconds>>> syncSpans(const CostModel& model, std::span<const Pipeline> pipelines,
                                                                const StageEnds& ends) {
  return Sync(model, pipelines, &ends).spans();
}

StageEnds exchangeTimes(const CostModel& model, std::span<const Pipeline> pipelines) {
  return model.training().zeroStage >= 2 ? Sync(model, pipelines, nullptr).exchanges() : StageEnds{};
}

std::vector<std::vector<std::int64_t>> paddedParameters(const CostModel& model, std::span<const Pipeline> pipelines) {
  assert(model.training().gradientSync == GradientSync::Device);
  std::vector<std::vector<std::int64_t>> padded(pipelines.size());
  for (std::size_t p = 0; p < pipelines.size(); ++p) padded[p].resize(pipelines[p].stages.size());
  for (const SyncBlock& block : syncBlocks(model, pipelines)) {
    std::size_t devices = 0;
    for (const StageRef& ref : block.holders) devices += stageOf(pipelines, ref).devices.size();
    if (devices == 1) continue;  // nothing is summed
    for (const StageRef& ref : block.holders) padded[ref.pipeline][ref.stage] = block.parameters;
  }
  return padded;
}

}  // namespace evenkeel
