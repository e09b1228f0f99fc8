// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include "core/base/units.h"

namespace evenkeel::gui {

/// Numbers as people read them: three significant digits and a unit. "1.84 s", "532 ms"; "6.74 G"; "27.1 GiB".
[[nodiscard]] QString timeText(Seconds time);
[[nodiscard]] QString countText(double number);
[[nodiscard]] QString bytesText(Bytes size);
[[nodiscard]] QString percentText(double fraction);
/// All digits in groups of three with thin spaces: "6 738 415 616".
[[nodiscard]] QString exactText(std::int64_t number);

}  // namespace evenkeel::gui
