// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <string_view>
#include <utility>

/// Files of this folder, compiled into the programs so that each is one file.
namespace evenkeel::embedded {

[[nodiscard]] std::string_view devicesCsv();
[[nodiscard]] std::string_view deviceSourcesCsv();
/// (file name, text) of resources/models, in the order of the catalogue.
[[nodiscard]] std::span<const std::pair<std::string_view, std::string_view>> models();

}  // namespace evenkeel::embedded
