// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace evenkeel {

/// The argument as one word of a POSIX shell; plain ones stay readable.
[[nodiscard]] std::string shellWord(std::string_view argument);

/// argv as a line that a POSIX shell splits into exactly these arguments. The only place where arguments become a line.
[[nodiscard]] std::string shellLine(const std::vector<std::string>& argv);

}  // namespace evenkeel
