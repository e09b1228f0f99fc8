// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <vector>

#include "core/search/eth/stage_search.h"

namespace evenkeel {

/// Gives every stage of every pipeline its devices: the largest tp groups first (so that sizes that are powers of two never block
/// each other), then in order of pipeline, stage and replica, each in the node of the lowest rank that has room. Empty: the nodes do
/// not hold them. `batches` are the local batches, all above 0.
[[nodiscard]] std::vector<Pipeline> placed(const CostModel& model, StageSearch& search, const Limits& limits,
                                           std::span<const PipelineChoice> choices, std::span<const std::int64_t> batches,
                                           std::span<const int> rankOfNode);

}  // namespace evenkeel
