// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace evenkeel::cli {

/// Text in aligned columns: the first row is the header; numbers (cells that begin with a digit or '-') stand to the right.
[[nodiscard]] std::string alignedTable(const std::vector<std::vector<std::string>>& rows);

/// 1234567 -> "1.23 M"; for parameter counts and samples.
[[nodiscard]] std::string shortCount(double number);

/// A duration with three significant digits and its unit: "1.84 s", "532 ms", "2.10 min".
[[nodiscard]] std::string shortTime(double seconds);

}  // namespace evenkeel::cli
