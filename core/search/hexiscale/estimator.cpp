// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/hexiscale/estimator.h"

#include <algorithm>
#include <limits>
#include <set>

namespace evenkeel::hexiscale {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr double kPipelineFactor = 1.8, kSyncFactor = 1.1;  // of the original, without a reason given

const Setting::Device& deviceOf(const Setting& setting, int device) { return setting.devices[static_cast<std::size_t>(device)]; }

/// The slowest member's time for sending `bytes` to each of the others, one after the other.
template <class Devices>
double slowestRound(const Setting& setting, const Devices& devices, double bytes) {
  double slowest = 0;
  for (const int from : devices) {
    double time = 0;
    for (const int to : devices) {
      if (to != from) time += bytes / setting.bandwidth(from, to);
    }
    slowest = std::max(slowest, time);
  }
  return slowest;
}

double computePerLayer(const Setting& setting, const StageDevices& stage, double samples) {
  const double h = setting.hidden, s = setting.sequence;
  const double work = 96 * samples * s * h * h * (1 + s / (6 * h) + setting.vocabulary / (16 * setting.layers * h));
  return work / (deviceOf(setting, stage.front()).flops * static_cast<double>(stage.size()));
}

double boundaryBytes(const Setting& setting, double samples) {
  return samples * setting.sequence * setting.hidden * setting.elementBytes;
}

double tensorPerLayer(const Setting& setting, const StageDevices& stage, double samples) {
  return 12 * slowestRound(setting, stage, boundaryBytes(setting, samples) / static_cast<double>(stage.size()));
}

/// From the best pair of devices, then on to the rest of the receiving group.
double sendSeconds(const Setting& setting, const StageDevices& from, const StageDevices& to, double samples) {
  const double bytes = boundaryBytes(setting, samples);
  double least = std::numeric_limits<double>::infinity();
  for (const int x : from) {
    for (const int y : to) {
      double time = bytes / setting.bandwidth(x, y);
      for (const int z : to) {
        if (z != y) time += bytes / (static_cast<double>(to.size()) * setting.bandwidth(y, z));
      }
      least = std::min(least, time);
    }
  }
  return 2 * least;
}

/// Columns of the map micro-batch x stage: in column t the stages t - count + 1 .. t are at work, and the slowest sets the pace.
double lockStep(std::span<const double> stages, std::int64_t count) {
  const auto stageCount = static_cast<std::int64_t>(stages.size());
  const auto slowest = [&](std::int64_t first, std::int64_t last) {
    return *std::max_element(stages.begin() + first, stages.begin() + last + 1);
  };
  double sum = 0;
  const std::int64_t columns = count + stageCount - 1;
  for (std::int64_t t = 0; t < columns; ++t) {
    const std::int64_t full = count - stageCount + 1;  // columns in which every stage works
    if (t == stageCount - 1 && full > 1) {
      sum += static_cast<double>(full) * slowest(0, stageCount - 1);
      t += full - 1;
      continue;
    }
    sum += slowest(std::max<std::int64_t>(0, t - count + 1), std::min(stageCount - 1, t));
  }
  return sum;
}

/// The stages that hold a layer, one of each pipeline.
std::vector<const StageDevices*> holdersOf(std::span<const Layout> layouts, int layer) {
  std::vector<const StageDevices*> holders;
  for (const Layout& layout : layouts) {
    int end = 0;
    for (std::size_t s = 0; s < layout.stages.size(); ++s) {
      end += layout.layers[s];
      if (layer >= end) continue;
      holders.push_back(&layout.stages[s]);
      break;
    }
  }
  return holders;
}

/// The all-reduces of one layer that one device of the smallest tp group takes part in.
double syncOfLayer(const Setting& setting, const std::vector<const StageDevices*>& holders) {
  std::size_t least = holders.front()->size(), most = least;
  for (const StageDevices* stage : holders) {
    least = std::min(least, stage->size());
    most = std::max(most, stage->size());
  }
  const double h = setting.hidden;
  const double bytes = 12 * h * h * setting.elementBytes / static_cast<double>(least * holders.size());
  double sum = 0;
  for (std::size_t i = 0; i < most / least; ++i) {
    StageDevices members;  // the i-th column where every group is stretched to the largest by repeating its devices
    for (const StageDevices* stage : holders) members.push_back((*stage)[i * stage->size() / most]);
    sum += 2 * slowestRound(setting, members, bytes);
  }
  return sum;
}

}  // namespace

std::vector<double> memoryGib(const Setting& setting, const Layout& layout, double microBatch) {
  const double h = setting.hidden, s = setting.sequence;
  std::vector<double> memory;
  for (std::size_t i = 0; i < layout.stages.size(); ++i) {
    const double n = layout.layers[i], t = static_cast<double>(layout.stages[i].size());
    double parameters = 12 * n * h * h / t;
    if (i + 1 == layout.stages.size()) parameters += h + setting.vocabulary * h;
    if (i == 0) parameters += h * (setting.vocabulary + s);
    const double activations = n * microBatch * s * h / t + 2 * microBatch * s * h;
    memory.push_back((parameters * 4 + activations) * setting.elementBytes / kGib);
  }
  return memory;
}

bool fitsByItsOwn(const Setting& setting, const Layout& layout, double microBatch) {
  const std::vector<double> needed = memoryGib(setting, layout, microBatch);
  for (std::size_t i = 0; i < needed.size(); ++i) {
    double there = 0;
    for (const int device : layout.stages[i]) there += deviceOf(setting, device).memoryGib;
    if (needed[i] > there / static_cast<double>(layout.stages[i].size())) return false;
  }
  return true;
}

double pipelineSeconds(const Setting& setting, const Layout& layout, Batches batches) {
  std::vector<double> costs;
  for (std::size_t s = 0; s < layout.stages.size(); ++s) {
    const double perLayer = computePerLayer(setting, layout.stages[s], batches.microBatch) +
                            tensorPerLayer(setting, layout.stages[s], batches.microBatch);
    costs.push_back(layout.layers[s] * perLayer);
    if (s + 1 < layout.stages.size())
      costs.back() += sendSeconds(setting, layout.stages[s], layout.stages[s + 1], batches.microBatch);
  }
  return lockStep(costs, batches.count);
}

double syncSeconds(const Setting& setting, std::span<const Layout> layouts) {
  if (layouts.size() < 2) return 0;
  std::set<int> cuts = {0, setting.layers};
  for (const Layout& layout : layouts) {
    int end = 0;
    for (const int layers : layout.layers) cuts.insert(end += layers);
  }
  double sum = 0;
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut)
    sum += (*std::next(cut) - *cut) * syncOfLayer(setting, holdersOf(layouts, *cut));
  return sum;
}

double iterationSeconds(double slowestPipeline, double sync) { return kPipelineFactor * slowestPipeline + kSyncFactor * sync; }

}  // namespace evenkeel::hexiscale
