// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace evenkeel {

/// Philox-4x32 with 10 rounds: 128 random bits that depend on (key, counter) only.
/// Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11. Same bits on every machine.
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// Random numbers by index instead of by order: element i is the same whoever asks for it, and whatever was asked before.
/// That is what makes initial weights and sample order independent of the plan.
class CounterRandom {
 public:
  /// `stream` separates uses of one seed, for example a tensor's name.
  CounterRandom(std::uint64_t seed, std::string_view stream);

  /// For those who compute philox() elsewhere: the key, and the upper half of the counter, whose lower half is the index.
  [[nodiscard]] std::array<std::uint32_t, 2> key() const { return key_; }
  [[nodiscard]] std::uint64_t stream() const { return stream_; }

  /// All 128 bits of an index; the others use some of them.
  [[nodiscard]] std::array<std::uint32_t, 4> block(std::uint64_t index) const;
  [[nodiscard]] std::uint64_t bits(std::uint64_t index) const;
  /// In [0, 1), 53 bits.
  [[nodiscard]] double uniform(std::uint64_t index) const;
  /// Mean 0, variance 1 (Box-Muller).
  [[nodiscard]] double normal(std::uint64_t index) const;
  /// Uniform in [0, bound); bound >= 1. Bias below 2^-32 for bounds below 2^32.
  [[nodiscard]] std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint64_t stream_;
};

}  // namespace evenkeel
