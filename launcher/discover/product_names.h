// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

#include "core/base/units.h"

namespace evenkeel {

/// The catalogue's name of a vendor's product ("NVIDIA A100-SXM4-80GB" -> "A100-80-SXM"), empty if there is none. Every word of the name
/// must be accounted for: an A10G is no A10 and a 3090 Ti no 3090; nothing is guessed. `memory` tells apart what the name does not.
[[nodiscard]] std::string catalogueNameOf(std::string_view product, Bytes memory);

}  // namespace evenkeel
