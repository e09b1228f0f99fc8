// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/search/optimal/plan_maker.h"

namespace evenkeel::optimal {

/// For so few devices and units that it can be done: every set of pipelines that may be faster than the incumbent, by the closed
/// form and as reported. Gives up after a fixed number of steps.
void tryEveryPlan(SearchSession& session, PlanSpace& space, PlanMaker& maker);

}  // namespace evenkeel::optimal
