// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdlib>
#include <string_view>

namespace evenkeel {

/// `./test.sh --full` sets EVENKEEL_FULL: sweeps then run whole.
[[nodiscard]] inline bool isFullRun() {
  const char* const full = std::getenv("EVENKEEL_FULL");
  return full != nullptr && std::string_view(full) != "" && std::string_view(full) != "0";
}

/// How often a seeded sweep runs: a small share by default.
[[nodiscard]] inline int sweep(int share, int all) { return isFullRun() ? all : share; }

}  // namespace evenkeel
