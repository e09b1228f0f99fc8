// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/search/limits.h"

namespace evenkeel::optimal {

/// Devices that a plan may do better without, each list sorted and less than all: those of the nodes that are alike, of the nodes
/// with the slowest ways out, of a type, and all but one of these; of few devices also the last one of each kind of node. No list
/// twice, those that leave most devices first.
[[nodiscard]] std::vector<std::vector<DeviceId>> worthLeavingIdle(const Cluster& cluster, const Limits& limits);

}  // namespace evenkeel::optimal
