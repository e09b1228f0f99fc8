// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>

#include "core/search/search.h"

namespace evenkeel {

/// Gives an Infeasible result its way out: the first change, smallest first, under which a plan of the uniform grid fits
/// (ZeRO, the fused kernel, a shorter sequence, more nodes). Applied, that change makes the problem feasible. Other results pass.
[[nodiscard]] Result<Plan> withRemedy(Result<Plan> result, const SearchTask& task, std::stop_token stop);

}  // namespace evenkeel
