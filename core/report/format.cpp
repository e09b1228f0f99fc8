// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/format.h"

#include <fmt/format.h>

namespace evenkeel::report {
namespace {

std::string threeDigits(double value) { return fmt::format("{:.{}f}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2); }

}  // namespace

std::string timeText(Seconds time) {
  const double seconds = time.value;
  if (seconds < 1e-3) return threeDigits(seconds * 1e6) + " µs";
  if (seconds < 1) return threeDigits(seconds * 1e3) + " ms";
  if (seconds < 120) return threeDigits(seconds) + " s";
  if (seconds < 7200) return threeDigits(seconds / 60) + " min";
  return threeDigits(seconds / 3600) + " h";
}

std::string percentText(double part) { return fmt::format("{:.1f} %", 100 * part); }

}  // namespace evenkeel::report
