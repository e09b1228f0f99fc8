// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/search/search.h"

namespace evenkeel {

/// The paper's planner (arXiv 2610.22035; algorithms.md 5.1): unlike pipelines of unlike stages, balanced in three phases.
[[nodiscard]] Planner ethPlanner();

}  // namespace evenkeel
