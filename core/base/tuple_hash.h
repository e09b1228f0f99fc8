// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

namespace evenkeel {

/// For unordered maps by a tuple of whole numbers. Equal on all machines.
struct TupleHash {
  template <class... Numbers>
  std::size_t operator()(const std::tuple<Numbers...>& key) const {
    std::uint64_t hash = 0;
    std::apply([&](const auto... number) { ((hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29), ...); },
               key);
    return static_cast<std::size_t>(hash);
  }
};

}  // namespace evenkeel
