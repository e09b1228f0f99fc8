// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/quoting.h"

namespace evenkeel {

std::string shellWord(std::string_view argument) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+:,./-";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string_view::npos) return std::string(argument);
  std::string word = "'";
  for (const char c : argument) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::string shellLine(const std::vector<std::string>& argv) {
  std::string line;
  for (const std::string& argument : argv) line += (line.empty() ? "" : " ") + shellWord(argument);
  return line;
}

}  // namespace evenkeel
