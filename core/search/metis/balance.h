// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace evenkeel::metis {

/// Layers of each stage for stages of the given performance (both sum to 1): every layer is cut into 7 slices, and a stage owns a
/// layer if it gets more than half of them (baseline-metis.md 4.2). A layer that nobody owns is lost: the sum may be less than
/// the number of layers, and a stage may be empty. At least one layer and one stage.
[[nodiscard]] std::vector<int> balanceLayers(std::span<const double> weights, std::span<const double> performance);

/// Performance shifted from stages whose demand exceeds their capacity to those with room (baseline-metis.md 4.2). None: there is
/// not enough room in all.
[[nodiscard]] std::optional<std::vector<double>> rebalance(std::span<const double> performance, std::span<const double> capacity,
                                                           std::span<const double> demand);

/// `samples` split over replicas in proportion to 1 / time, remainders to the largest fractions, earlier replicas first
/// (baseline-metis.md 4.3).
[[nodiscard]] std::vector<int> splitSamples(int samples, std::span<const double> times);

}  // namespace evenkeel::metis
