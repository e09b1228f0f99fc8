// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json_reader.h"
#include "core/cluster/cluster.h"

namespace evenkeel {

/// What a cluster must hold as a whole: switches with names of their own and members that exist, each once, without a loop; one link at
/// most between two nodes; no card (uuid) twice. The first fault goes to `reader`, the reader of the cluster object. O(members + devices).
void checkTopology(const Cluster& cluster, JsonReader& reader);

}  // namespace evenkeel
