// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace evenkeel {

enum class Precision { Fp32, Bf16, Fp16 };

/// The words of files and of the command line: "fp32", "bf16", "fp16".
[[nodiscard]] std::span<const std::pair<std::string_view, Precision>> precisionWords();
[[nodiscard]] std::string_view name(Precision precision);

/// Bytes of one number: 4 or 2.
[[nodiscard]] int bytesOf(Precision precision);

}  // namespace evenkeel
