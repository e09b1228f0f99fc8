// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <vector>

#include "core/cost/cost_model.h"
#include "core/search/optimal/stage_options.h"

namespace evenkeel::optimal {

/// Over which links the rings of the gradient sync run.
enum class Rings { InNode, BetweenNodes };

/// Seconds of gradient sync and optimizer for each parameter that a device of a kind stores, by kind, latencies left out, where
/// only `devices` (by node and index) are used.
/// Purpose::Bound: no plan of at least so many pipelines takes less (with Rings::BetweenNodes: whose pipelines are more than a
/// node has devices, so that every ring leaves its node). Purpose::Plan: about what one of so many pipelines takes.
[[nodiscard]] std::vector<double> syncRates(const CostModel& model, std::span<const DeviceId> devices, Purpose purpose,
                                            Rings rings, int pipelines);

}  // namespace evenkeel::optimal
