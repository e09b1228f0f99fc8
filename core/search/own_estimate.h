// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string_view>

#include "core/search/session.h"

namespace evenkeel {

/// What planners share that follow a public one and rank plans by its estimator.

/// `exact` is no option of a search: InvalidInput that names what a recorded case `needs`.
[[nodiscard]] Result<void> refuseExact(const PlannerOptions& given, std::string_view needs);

/// Of plans 0 .. count - 1, best by the estimator first, the first valid one becomes the incumbent; a few are tried although the
/// search was stopped. How many were tried.
std::size_t takeFirstValid(SearchSession& session, std::size_t count,
                           const std::function<const std::vector<Pipeline>&(std::size_t)>& planAt);

}  // namespace evenkeel
