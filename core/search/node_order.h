// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/search/search.h"

namespace evenkeel {

/// The same planner for which the order of nodes and of device types in a cluster file means nothing: it searches a cluster whose
/// nodes stand in an order of their own (fastest devices first, then by what else a node is; nodes that are alike stay as they
/// are), and its plans are given back in the order of the task. Where links or switches are drawn, the plan is evaluated again: a
/// ring goes by device id. O(devices), with drawn links O(nodes^2).
[[nodiscard]] Planner inAnyNodeOrder(Planner planner);

}  // namespace evenkeel
