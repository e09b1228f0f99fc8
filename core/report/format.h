// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/base/units.h"

namespace evenkeel::report {

/// Three significant digits with a unit: "1.84 s", "532 ms", "2.10 min".
[[nodiscard]] std::string timeText(Seconds time);
/// "14.4 %".
[[nodiscard]] std::string percentText(double part);

}  // namespace evenkeel::report
