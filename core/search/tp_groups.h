// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <vector>

#include "core/cluster/cluster.h"

namespace evenkeel {

/// `tp` devices of one type in one node.
using TpGroup = std::vector<DeviceId>;

/// As many groups as the nodes hold, in order of device id; what does not fill a group is left out. `devices` is sorted.
[[nodiscard]] std::vector<TpGroup> tpGroups(const Cluster& cluster, std::span<const DeviceId> devices, int tp);

}  // namespace evenkeel
