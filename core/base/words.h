// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

namespace evenkeel {

/// The word of a value in a table of (word, value) pairs; empty if the table lacks it.
template <class Table, class Value>
[[nodiscard]] constexpr std::string_view wordOf(const Table& table, Value value) {
  for (const auto& [word, known] : table) {
    if (known == value) return word;
  }
  return {};
}

/// ASCII letters in lower case; everything else as it is.
[[nodiscard]] inline std::string lowerCase(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

/// Levenshtein distance: letters to add, drop or change. O(|a| |b|).
[[nodiscard]] std::size_t editDistance(std::string_view a, std::string_view b);

/// Whether a person who wrote `word` probably meant `known`: one letter off, two in words of eight letters or more; short words never.
[[nodiscard]] bool isMisspelling(std::string_view word, std::string_view known);

/// "1 stage", "2 stages": a count with its noun.
[[nodiscard]] std::string counted(std::size_t count, std::string_view noun);

/// The whole text as a number of type T, independent of the locale; nothing if anything is left over, out of range or not finite.
template <class T>
[[nodiscard]] std::optional<T> parseNumber(std::string_view text) {
  T value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

}  // namespace evenkeel
