// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/metis/layout_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace evenkeel::metis {
namespace {

/// Rounding must not rule out what is as good as the best.
constexpr double kMargin = 1 + 1e-9;
constexpr int kRounds = 3;

int ceilDivide(int a, int b) { return (a + b - 1) / b; }

}  // namespace

const std::vector<LayoutBound::Way>& LayoutBound::waysOf(int kind, int size, int microBatch) {
  const auto [entry, isNew] = ways_.try_emplace({kind, size, microBatch});
  for (int dp = 1; isNew && dp <= std::min(size, microBatch); dp *= 2) {
    if (size % dp != 0 || std::ranges::find(limits_.tps, size / dp) == limits_.tps.end()) continue;
    const int samples = ceilDivide(microBatch, dp);
    if (samples > options_.mostSamples) continue;
    const StageTable& table = tables_.of(kind, size / dp, samples);
    entry->second.push_back({dp, microBatch / table.time({unitsOf(model_.model(), 0, model_.model().layers + 2), 0}).value,
                             microBatch / table.layerTime().value});
  }
  return entry->second;
}

const LayoutBound::Rates& LayoutBound::bestRates(int kind, int microBatch) {
  const auto [entry, isNew] = bestRates_.try_emplace({kind, microBatch}, Rates{});
  for (std::size_t t = 0; isNew && t < limits_.tps.size(); ++t) {
    for (int samples = 1; samples <= std::min(microBatch, options_.mostSamples); ++samples) {
      const StageTable& table = tables_.of(kind, limits_.tps[t], samples);
      const double each = static_cast<double>(samples) / limits_.tps[t];
      entry->second.model =
          std::max(entry->second.model, each / table.time({unitsOf(model_.model(), 0, model_.model().layers + 2), 0}).value);
      entry->second.layer = std::max(entry->second.layer, each / table.layerTime().value);
    }
  }
  return entry->second;
}

/// Samples in a second of the whole model, at most; 0: no strategy.
double LayoutBound::modelRate(const DeviceGroup& stage, int microBatch) {
  double rate = 0;
  if (stage.kinds.size() == 1) {
    for (const Way& way : waysOf(stage.kinds.front().first, stage.kinds.front().second, microBatch))
      rate = std::max(rate, way.model);
  } else {
    for (const auto& [kind, count] : stage.kinds) rate += count * bestRates(kind, microBatch).model;
  }
  return rate;
}

int LayoutBound::layersThatFit(int kind, int size, int dp, int microBatch, int inFlight) {
  const auto [entry, isNew] = layersThatFit_.try_emplace({kind, size, dp, microBatch, inFlight}, 0);
  if (!isNew) return entry->second;
  const StageTable& table = tables_.of(kind, size / dp, std::max(1, microBatch / dp));
  while (entry->second < model_.model().layers) {
    const LevelRange part{unitsOf(model_.model(), 1, 2 + entry->second), 0};
    if (!table.fits({&part, 1}, inFlight, dp, false)) break;
    ++entry->second;
  }
  return entry->second;
}

/// Layers that a stage holds and works off within the pace, at most; one of several kinds as if it were all of the roomiest.
int LayoutBound::mostLayers(const DeviceGroup& stage, int microBatch, int inFlight, double pace) {
  const auto inTime = [&](double rate) { return std::floor(std::min(1e6, pace * rate / microBatch * kMargin)); };
  const int size = static_cast<int>(stage.devices.size());
  int most = 0;
  if (stage.kinds.size() == 1) {
    const int kind = stage.kinds.front().first;
    for (const Way& way : waysOf(kind, size, microBatch)) {
      const int fast = static_cast<int>(inTime(way.layer));
      if (fast > most) most = std::max(most, std::min(fast, layersThatFit(kind, size, way.dp, microBatch, inFlight)));
    }
    return most;
  }
  double rate = 0;
  for (const auto& [kind, count] : stage.kinds) {
    rate += count * bestRates(kind, microBatch).layer;
    for (int dp = 1; dp <= std::min(size, microBatch); dp *= 2) {
      if (size % dp == 0 && std::ranges::find(limits_.tps, size / dp) != limits_.tps.end())
        most = std::max(most, layersThatFit(kind, size, dp, microBatch, inFlight));
    }
  }
  return std::min(most, static_cast<int>(inTime(rate)));
}

bool LayoutBound::mayBeWithin(const Layout& stages, int microBatch, double estimate) {
  const std::int64_t count = (model_.training().globalBatch + microBatch - 1) / microBatch;
  const double further = static_cast<double>(count - 1);
  rates_.clear();
  double all = 0;
  for (const DeviceGroup& stage : stages) {
    const double rate = modelRate(stage, microBatch) / microBatch;
    if (rate == 0) return false;
    const auto alike = std::ranges::find(rates_, rate, &std::pair<double, int>::first);
    if (alike != rates_.end()) ++alike->second;
    else rates_.emplace_back(rate, 1);
    all += rate;
  }
  std::ranges::sort(rates_, std::greater<>{});
  // Of the sum, at a pace: the fastest stages first.
  const auto leastSum = [&](double pace) {
    double sum = 0, left = 1;
    for (const auto& [rate, times] : rates_) {
      const double taken = std::min(left, times * pace * rate);
      sum += taken / rate;
      left -= taken;
      if (left <= 0) break;
    }
    return sum;
  };
  const double limit = estimate * kMargin;
  // Memory may force most layers on a slow stage: no stage's own pace is a limit.
  double pace = limit;
  for (int round = 0; round < kRounds; ++round) {
    const double left = limit - leastSum(pace);
    if (left < 0) return false;
    if (further > 0) pace = std::min(pace, left / further);
    if (pace * all * kMargin < 1) return false;
  }
  if (stages.size() < 2) return true;
  const int layers = model_.model().layers;
  int held = 0;
  for (std::size_t s = 0; s < stages.size() && held < layers; ++s)
    held += mostLayers(stages[s], microBatch, inFlightMicroBatches(s, stages.size(), count), pace);
  return held >= layers;
}

}  // namespace evenkeel::metis
