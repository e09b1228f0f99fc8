// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>

namespace evenkeel {

/// Prints what `optimal` finds on clusters of A100-40 and V100-16 with the profiles and link fits of the Sailor artifact (in the
/// folder `data`), beside the best plan of Sailor's shape, the A100s alone, and the CPU time that Sailor recorded. `fewer`: the
/// smallest clusters alone.
void compareSailor(const std::filesystem::path& data, bool fewer);

}  // namespace evenkeel
