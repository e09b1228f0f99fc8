// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <cmath>
#include <string>

namespace evenkeel::gui {

inline QString text(const std::string& words) { return QString::fromStdString(words); }

/// A bandwidth, latency or price as people read and type it: at most four digits behind the point, no zeros at the end. "12.5",
/// "0.16".
[[nodiscard]] inline QString numberText(double number) {
  const double shown = std::round(number * 1e4) / 1e4;
  return shown == 0 && number != 0 ? QString::number(number, 'g', 3) : QString::number(shown, 'g', 10);
}

}  // namespace evenkeel::gui
