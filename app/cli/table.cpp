// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace evenkeel::cli {
namespace {

bool isNumber(const std::string& cell) { return !cell.empty() && (cell[0] == '-' || (cell[0] >= '0' && cell[0] <= '9')); }

std::string threeDigits(double value) {
  const int decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string alignedTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  // A column of numbers has its header to the right too.
  std::vector<bool> right(widths.size(), false);
  for (std::size_t c = 0; c < widths.size(); ++c) {
    right[c] = rows.size() > 1 && std::all_of(rows.begin() + 1, rows.end(), [&](const auto& row) { return c >= row.size() || row[c].empty() || isNumber(row[c]); });
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line += "  ";
      line += right[c] ? fmt::format("{:>{}}", row[c], widths[c]) : fmt::format("{:<{}}", row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string shortCount(double number) {
  constexpr std::array<const char*, 5> kUnits = {"", " k", " M", " G", " T"};
  std::size_t unit = 0;
  while (number >= 999.5 && unit + 1 < kUnits.size()) {
    number /= 1000;
    ++unit;
  }
  return unit == 0 && number == std::floor(number) ? fmt::format("{:.0f}", number) : threeDigits(number) + kUnits[unit];
}

std::string shortTime(double seconds) {
  if (seconds < 0) return "-" + shortTime(-seconds);
  if (seconds < 1e-3) return threeDigits(seconds * 1e6) + " us";
  if (seconds < 1) return threeDigits(seconds * 1e3) + " ms";
  if (seconds < 120) return threeDigits(seconds) + " s";
  if (seconds < 7200) return threeDigits(seconds / 60) + " min";
  return threeDigits(seconds / 3600) + " h";
}

}  // namespace evenkeel::cli
