// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/search/limits.h"
#include "core/search/session.h"

namespace evenkeel::optimal {

/// For unlike nodes: exchanges the devices of two tp groups of the incumbent, or those of one for idle ones, as long as the
/// reported number falls.
void tryOtherDevices(SearchSession& session, const Limits& limits);

}  // namespace evenkeel::optimal
