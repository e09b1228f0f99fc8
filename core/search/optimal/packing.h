// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/search/optimal/price_search.h"

namespace evenkeel::optimal {

/// A pipeline without its devices, as often as they suffice.
struct Column {
  Path path;
  std::vector<int> dps;   // of its stages
  std::vector<int> uses;  // by resource
  int microBatch = 1;
  std::int64_t mostMicroBatches = 1;  // that its memory holds
  double fill = 0, pace = 0;          // of the closed form
  double sync = 0;                    // of its largest stage, about; counts towards the time

  /// Samples that it trains within the time.
  [[nodiscard]] std::int64_t samplesIn(double time) const;
};

/// Fractions of columns that train most samples within `time` on the resources; what one more of each would add.
struct Relaxed {
  double samples = 0;
  std::vector<double> prices;                             // by resource
  std::vector<std::pair<std::size_t, double>> fractions;  // (column, how many), at most one for each resource
};
/// max sum v_j y_j with sum c_j y_j <= amounts, y >= 0, by the simplex method. O(pivots x columns x resources).
[[nodiscard]] Relaxed packRelaxed(std::span<const Column> columns, std::span<const int> amounts, double time);

/// The least time within which fractions of columns train the batch, to a relative 1e-6, and the packing there. Nothing: never.
/// Stopped: a longer time, or nothing.
struct RelaxedTime {
  double time = 0;
  Relaxed packing;
};
[[nodiscard]] std::optional<RelaxedTime> leastRelaxedTime(std::span<const Column> columns, std::span<const int> amounts,
                                                          std::int64_t batch, const std::function<bool()>& stopped);

/// Whole columns.
struct Packed {
  double time = 0;
  std::vector<std::pair<std::size_t, int>> copies;  // (column, how many)
};
/// Whole columns that train the batch within `time`: the fractions rounded down, and the best of what is left over
/// (exact on their grid where it is small). Not always found where there is one.
[[nodiscard]] std::optional<Packed> packWhole(std::span<const Column> columns, std::span<const int> amounts, std::int64_t batch,
                                              double time);

}  // namespace evenkeel::optimal
