// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/search/session.h"

namespace evenkeel {

/// Removes the bottleneck of the incumbent under the reported number itself, as long as it helps: a unit over a cut of the
/// slowest pipelines (equal ones together), or samples from a slowest pipeline to another.
void polish(SearchSession& session);

}  // namespace evenkeel
