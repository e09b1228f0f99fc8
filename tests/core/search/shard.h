// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/sweep.h"

namespace evenkeel {

/// Some problems alone: nothing of how many of all have a property can be asked of them.
[[nodiscard]] inline bool isSharded() { return std::getenv("EVENKEEL_SHARD") != nullptr; }

/// The problems of a seeded sweep. EVENKEEL_SHARD=2/5 takes every fifth from number 2 on, so that a sweep of hours can be run in
/// pieces, and EVENKEEL_SHARD=79/300 one problem of 300 alone.
[[nodiscard]] inline std::vector<std::uint64_t> sweepIndices(int share, int all) {
  int first = 0, step = 1;
  if (const char* const shard = std::getenv("EVENKEEL_SHARD");
      shard != nullptr && (std::sscanf(shard, "%d/%d", &first, &step) != 2 || first < 0 || step < 1)) {
    std::fprintf(stderr, "error: EVENKEEL_SHARD is \"%s\"\nhint: expected K/N\n", shard);
    std::exit(2);
  }
  std::vector<std::uint64_t> indices;
  for (int i = first; i < sweep(share, all); i += step) indices.push_back(static_cast<std::uint64_t>(i));
  return indices;
}

}  // namespace evenkeel
