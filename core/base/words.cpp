// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/words.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace evenkeel {

std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

bool isMisspelling(std::string_view word, std::string_view known) {
  constexpr std::size_t kShort = 5, kLong = 8, kLongest = 64;
  const std::size_t size = std::min(word.size(), known.size());
  if (size < kShort || std::max(word.size(), known.size()) > kLongest || word == known) return false;
  return editDistance(word, known) <= (size < kLong ? 1 : 2);
}

std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace evenkeel
