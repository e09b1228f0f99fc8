// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/search/search.h"
#include "core/search/session.h"

namespace evenkeel {

/// Megatron-LM's grid: one (tp, pp, dp) for all devices, layers and batches as equal as divisibility allows.
[[nodiscard]] Planner uniformPlanner();

/// The whole grid into the session; also the first candidates of other planners.
void considerUniformGrid(SearchSession& session, const PlannerOptions& options = {});

}  // namespace evenkeel
