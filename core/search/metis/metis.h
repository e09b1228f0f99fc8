// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/search/search.h"

namespace evenkeel {

/// Metis-style (ATC'24): one pipeline over all devices in the order of their types, groups of powers of two, one dp x tp a stage,
/// layers balanced by speed. The search of public Metis with its faults mended; see searchAsOriginal for the faults.
[[nodiscard]] Planner metisPlanner();

}  // namespace evenkeel
