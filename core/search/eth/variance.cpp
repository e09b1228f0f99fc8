// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/eth/variance.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace evenkeel {
namespace {

/// Mean and normalised variance of values that occur `count` times.
struct Moments {
  double count = 0, sum = 0, squares = 0;
  void add(double value, double times) {
    count += times;
    sum += times * value;
    squares += times * value * value;
  }
  [[nodiscard]] double normalisedVariance() const {
    if (sum <= 0) return 0;
    const double mean = sum / count;
    return std::max(0.0, squares / count / (mean * mean) - 1.0);
  }
};

}  // namespace

Spread spreadOf(const Grouping& grouping, const std::vector<double>& flopsOfType) {
  Moments pipelines;
  double intra = 0;
  for (const Composition& composition : grouping) {
    Moments devices;
    for (std::size_t t = 0; t < composition.size(); ++t) devices.add(flopsOfType[t], composition[t]);
    pipelines.add(devices.sum, 1);
    intra += devices.normalisedVariance();
  }
  return {pipelines.normalisedVariance(), intra / static_cast<double>(grouping.size())};
}

void orderByVariance(std::vector<Grouping>& groupings, const std::vector<double>& flopsOfType, int unitCount) {
  std::map<std::size_t, std::size_t> placeOfCount;  // number of pipelines -> order of its first grouping
  for (const Grouping& grouping : groupings) placeOfCount.try_emplace(grouping.size(), placeOfCount.size());
  struct Ranked {
    std::size_t place;
    double unevenness;
    Grouping grouping;
  };
  std::vector<Ranked> ranked;
  for (Grouping& grouping : groupings) {
    const Spread spread = spreadOf(grouping, flopsOfType);
    double devices = 0;
    for (const Composition& composition : grouping) devices += std::accumulate(composition.begin(), composition.end(), 0);
    const double perUnit = devices / static_cast<double>(grouping.size()) / unitCount;
    ranked.push_back({placeOfCount.at(grouping.size()), spread.inter + perUnit * spread.intra, std::move(grouping)});
  }
  std::ranges::stable_sort(ranked, [](const Ranked& a, const Ranked& b) {
    return a.place != b.place ? a.place < b.place : a.unevenness < b.unevenness;
  });
  for (std::size_t i = 0; i < ranked.size(); ++i) groupings[i] = std::move(ranked[i].grouping);
}

}  // namespace evenkeel
