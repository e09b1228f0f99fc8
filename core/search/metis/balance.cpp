// SPDX-License-Identifier: GPL-3.0-or-later
// Sums run from left to right and nothing is rearranged: recorded runs of the original are equal to the last bit.
#include "core/search/metis/balance.h"

#include <algorithm>
#include <numeric>

namespace evenkeel::metis {
namespace {

constexpr int kSlices = 7;
/// The forward pass leaves the last layer, and one slice more, to the last stage.
constexpr int kLeftToLast = kSlices + 1;
/// More rounds than this would go on for ever (fault B9).
constexpr int kMostRounds = 1000;

double sumOf(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

/// Slices of layers, by stage, ascending.
class SliceBalance {
 public:
  SliceBalance(std::span<const double> weights, std::span<const double> performance)
      : weights_(weights), capacity_(performance.begin(), performance.end()), owned_(performance.size()) {
    const std::size_t usual = 2 * static_cast<std::size_t>(sliceCount()) / owned_.size();
    for (std::vector<int>& slices : owned_) slices.reserve(usual);
  }

  /// Layers by stage, ascending.
  std::vector<std::vector<int>> run() {
    forward();
    backward();
    placeLeftOvers();
    std::vector<std::vector<int>> layers(owned_.size());
    for (std::size_t s = 0; s < owned_.size(); ++s) {
      int layer = -1, count = 0;
      for (const int slice : owned_[s]) {
        count = slice / kSlices == layer ? count + 1 : 1;
        layer = slice / kSlices;
        if (count == kSlices / 2 + 1) layers[s].push_back(layer);  // more than half of it
      }
    }
    return layers;
  }

 private:
  [[nodiscard]] int sliceCount() const { return kSlices * static_cast<int>(weights_.size()); }
  [[nodiscard]] double weightOf(int slice) const { return weights_[static_cast<std::size_t>(slice / kSlices)] / kSlices; }
  void give(std::size_t stage, int slice) {
    owned_[stage].push_back(slice);
    capacity_[stage] -= weightOf(slice);
  }

  void forward() {
    int slice = 0;
    const int end = sliceCount() - kLeftToLast;
    for (std::size_t s = 0; s + 1 < owned_.size(); ++s) {
      for (; slice < end && capacity_[s] > weightOf(slice); ++slice) give(s, slice);
      if (slice < end) aside_.push_back(slice++);
    }
    for (; slice < sliceCount(); ++slice) aside_.push_back(slice);
  }

  void backward() {
    const std::size_t last = owned_.size() - 1;
    while (!aside_.empty()) {
      const int slice = aside_.back();
      const bool isFirstLayer = owned_[last].size() < kSlices;
      if (!isFirstLayer && (slice + 1 != owned_[last].back() || capacity_[last] <= weightOf(slice))) break;
      give(last, slice);
      aside_.pop_back();
    }
    std::ranges::reverse(owned_[last]);
  }

  void placeLeftOvers() {
    for (const int slice : aside_) {
      std::size_t first = 0, last = owned_.size() - 1;
      for (std::size_t s = 0; s < owned_.size(); ++s) {
        if (!owned_[s].empty() && owned_[s].back() < slice) first = s;
      }
      for (std::size_t s = owned_.size(); s-- > 0;) {
        if (!owned_[s].empty() && owned_[s].front() > slice) last = s;
      }
      std::size_t best = first;
      for (std::size_t s = first; s <= last; ++s) {
        if (capacity_[s] > capacity_[best]) best = s;
      }
      give(best, slice);
      std::ranges::inplace_merge(owned_[best], owned_[best].end() - 1);
    }
  }

  std::span<const double> weights_;
  std::vector<double> capacity_;  // left of each stage's performance
  std::vector<std::vector<int>> owned_;
  std::vector<int> aside_;
};

/// Up to three moves of a border layer to the stage that has most performance left.
void improve(std::vector<std::vector<int>>& layers, std::span<const double> weights, std::span<const double> performance) {
  std::vector<double> left;
  for (std::size_t s = 0; s < layers.size(); ++s) {
    double used = 0;
    if (!layers[s].empty()) {
      const auto first = static_cast<std::size_t>(layers[s].front()), last = static_cast<std::size_t>(layers[s].back());
      used = sumOf(weights.subspan(first, last - first + 1));
    }
    left.push_back(performance[s] - used);
  }
  for (int move = 0; move < 3 && layers.size() > 1; ++move) {
    const auto taker = static_cast<std::size_t>(std::ranges::max_element(left) - left.begin());
    const bool fromLeft = taker + 1 == layers.size() || (taker > 0 && left[taker - 1] <= left[taker + 1]);
    const std::size_t giver = fromLeft ? taker - 1 : taker + 1;
    if (layers[giver].size() < 2) return;
    const int layer = fromLeft ? layers[giver].back() : layers[giver].front();
    std::vector<double> changed = left;
    changed[taker] -= weights[static_cast<std::size_t>(layer)];
    changed[giver] += weights[static_cast<std::size_t>(layer)];
    if (std::ranges::max(changed) > left[taker]) return;
    left = std::move(changed);
    if (fromLeft) {
      layers[giver].pop_back();
      layers[taker].insert(layers[taker].begin(), layer);
    } else {
      layers[giver].erase(layers[giver].begin());
      layers[taker].push_back(layer);
    }
  }
}

}  // namespace

std::vector<int> balanceLayers(std::span<const double> weights, std::span<const double> performance) {
  std::vector<std::vector<int>> layers = SliceBalance(weights, performance).run();
  improve(layers, weights, performance);
  std::vector<int> counts;
  for (const std::vector<int>& owned : layers) counts.push_back(static_cast<int>(owned.size()));
  return counts;
}

std::optional<std::vector<double>> rebalance(std::span<const double> performance, std::span<const double> capacity,
                                             std::span<const double> demand) {
  std::vector<double> kept, spare, added(performance.size(), 0.0);
  double needed = 0;
  for (std::size_t s = 0; s < performance.size(); ++s) {
    const double now = performance[s];
    if (capacity[s] > demand[s]) {
      kept.push_back(now);
      spare.push_back(now * capacity[s] / demand[s] - now);
    } else {
      kept.push_back(now * (capacity[s] / demand[s]) * 0.9);
      spare.push_back(0.0);
      needed += now - kept.back();
    }
  }
  if (sumOf(spare) < needed) return std::nullopt;
  for (int round = 0; needed > 0.01; ++round) {
    if (round == kMostRounds) return std::nullopt;
    std::vector<std::size_t> takers;
    double all = 0;
    for (std::size_t s = 0; s < spare.size(); ++s) {
      if (spare[s] <= 0.001) continue;
      takers.push_back(s);
      all += performance[s];
    }
    for (const std::size_t s : takers) {
      const double taken = std::min(needed * (performance[s] / all), spare[s]);
      added[s] += taken;
      spare[s] -= taken;
      needed -= taken;
    }
  }
  for (std::size_t s = 0; s < kept.size(); ++s) kept[s] += added[s];
  return kept;
}

std::vector<int> splitSamples(int samples, std::span<const double> times) {
  double all = 0;
  if (times.size() == 1) return {samples};
  std::vector<double> fractions;
  for (const double time : times) all += 1.0 / time;
  std::vector<int> split;
  int left = samples;
  for (const double time : times) {
    const double share = samples * (1.0 / time) / all;
    split.push_back(static_cast<int>(share));
    fractions.push_back(share - static_cast<int>(share));
    left -= split.back();
  }
  std::vector<std::size_t> order(times.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return fractions[a] > fractions[b]; });
  for (std::size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++split[order[i]];
  return split;
}

}  // namespace evenkeel::metis
