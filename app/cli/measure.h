// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>

#include "core/cluster/cluster.h"

namespace evenkeel::cli {

/// Measures the connections between all nodes of a cluster and sets its links: copies evenkeel-agent to each node (its cache
/// folder), lets each pair exchange messages of 64 KiB, 1 MiB and 16 MiB at the nodes' train_address (else the address of the SSH
/// connection), pair by pair.
[[nodiscard]] Result<void> measureLinks(Cluster& cluster, const std::stop_token& stop);

}  // namespace evenkeel::cli
