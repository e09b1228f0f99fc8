// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace evenkeel {
namespace {

// Known-answer vectors of the authors' Random123 library (kat_vectors, philox4x32 10).
TEST(Philox, GivesTheAuthorsKnownAnswers) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRandom, DependsOnSeedStreamAndIndexOnly) {
  const CounterRandom random(1, "layer.0");
  EXPECT_EQ(random.bits(5), CounterRandom(1, "layer.0").bits(5));
  EXPECT_NE(random.bits(5), CounterRandom(2, "layer.0").bits(5));
  EXPECT_NE(random.bits(5), CounterRandom(1, "layer.1").bits(5));
  EXPECT_NE(random.bits(5), random.bits(6));
}

TEST(CounterRandom, NormalNumbersHaveMeanZeroAndVarianceOne) {
  const CounterRandom random(7, "test");
  constexpr int kCount = 100'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.normal(static_cast<std::uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 4.0 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1.0, 4.0 * std::sqrt(2.0 / kCount));
}

TEST(CounterRandom, BelowIsUniformOverItsRange) {
  const CounterRandom random(3, "test");
  std::array<int, 7> counts{};
  for (std::uint64_t i = 0; i < 70'000; ++i) ++counts.at(random.below(i, 7));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 5 * std::sqrt(10'000));
}

}  // namespace
}  // namespace evenkeel
