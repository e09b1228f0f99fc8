// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/profile.h"

#include <array>

namespace evenkeel {

std::string_view name(ValueSource source) {
  constexpr std::array<std::string_view, 5> kWords = {"measured", "imported", "interpolated", "apportioned", "analytic"};
  return kWords[static_cast<std::size_t>(source)];
}

}  // namespace evenkeel
