// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <vector>

#include "core/search/limits.h"
#include "core/search/optimal/packing.h"

namespace evenkeel::optimal {

/// A pipeline of a plan: its column and what it trains.
struct Load {
  std::size_t column = 0;
  std::int64_t batch = 0;
};

/// The columns of the packing with the local batches of the least time in which they train the whole batch; columns that are not
/// needed are left out. `times[i]` is the fill and pace of packed.copies[i]'s column.
[[nodiscard]] std::vector<Load> balanced(std::span<const Column> columns, const Packed& packed, std::span<const PathTime> times,
                                         std::int64_t batch);

/// What shares a node where it can: stages of one pipeline (cheap sends) or the same stage of all pipelines (cheap sync).
enum class Neighbours { Stages, Replicas };
/// Gives every stage its devices: the largest tp groups first (so that sizes that are powers of two never block each other), then
/// in order of what shall be neighbours, each in the node of the lowest rank that has room. Empty: the nodes do not hold them.
[[nodiscard]] std::vector<Pipeline> placed(const CostModel& model, const StageOptions& options, const Limits& limits,
                                           std::span<const Column> columns, std::span<const Load> loads, Neighbours neighbours,
                                           std::span<const int> rankOfNode);
/// Ranks of nodes: those with the fastest way out first, so that what stays idle is behind the slowest.
[[nodiscard]] std::vector<int> ranksByWayOut(const Cluster& cluster);

/// Fill and pace of a placed pipeline as it is simulated with about so many micro-batches.
[[nodiscard]] PathTime simulatedTime(const CostModel& model, const Pipeline& pipeline);

}  // namespace evenkeel::optimal
