// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace evenkeel::hexiscale {

/// What HexiScale knows of devices and model: peak speed, memory, bandwidth, no profile and no latency
/// (baseline-hexiscale.md 1.1).
struct Setting {
  struct Device {
    int host = 0;      // one machine and one type: a tp group stays inside
    double flops = 0;  // peak, per second
    double memoryGib = 0;
  };
  std::vector<Device> devices;
  std::function<double(int, int)> bandwidth;  // bytes per second between two unlike devices, by index
  int layers = 0;
  double hidden = 0, sequence = 0, vocabulary = 0;
  double elementBytes = 2;
  std::vector<int> tps = {1, 2, 4, 8};  // degrees that the model can be divided by, ascending
};

/// Devices of one tp group, by index: a stage is exactly one of them (baseline-hexiscale.md 1.6).
using StageDevices = std::vector<int>;

/// A pipeline as HexiScale lays it out.
struct Layout {
  std::vector<StageDevices> stages;
  std::vector<int> layers;  // of each stage
  bool operator==(const Layout&) const = default;
};

/// Samples of one micro-batch of each pipeline, and their number.
struct Batches {
  double microBatch = 1;
  std::int64_t count = 1;
};

/// One device of each stage, in GiB: 16-bit weights, gradients and moments, activations of one micro-batch (1.7).
[[nodiscard]] std::vector<double> memoryGib(const Setting& setting, const Layout& layout, double microBatch);
/// True where every stage is within the memory of its devices, by memoryGib.
[[nodiscard]] bool fitsByItsOwn(const Setting& setting, const Layout& layout, double microBatch);

/// Seconds of one iteration of one pipeline (1.8): lock-step columns of the slowest stage at work. O(stages x micro-batches) at
/// most, O(stages) where the micro-batches outnumber the stages.
[[nodiscard]] double pipelineSeconds(const Setting& setting, const Layout& layout, Batches batches);
/// Seconds of the gradient all-reduces between the pipelines, layer by layer (1.8). O(layer ranges x pipelines^2).
[[nodiscard]] double syncSeconds(const Setting& setting, std::span<const Layout> layouts);
/// 1.8 x the slowest pipeline + 1.1 x the sync: what HexiScale calls the time of an iteration.
[[nodiscard]] double iterationSeconds(double slowestPipeline, double sync);

}  // namespace evenkeel::hexiscale
