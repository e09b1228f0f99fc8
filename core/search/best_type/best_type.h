// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/search/search.h"

namespace evenkeel {

/// Each device type alone, the others idle: what people compare with before they add old cards to new ones.
[[nodiscard]] Planner bestTypePlanner();

}  // namespace evenkeel
