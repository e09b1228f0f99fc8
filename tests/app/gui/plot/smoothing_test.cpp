// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plot/smoothing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace evenkeel::gui {
namespace {

TEST(Smoothing, OfWeightZeroShowsTheValues) {
  Smoothing smoothing(0);
  EXPECT_EQ(smoothing.next(3), 3);
  EXPECT_EQ(smoothing.next(-7), -7);
}

TEST(Smoothing, BeginsAtTheFirstValueAndNotAtZero) {
  Smoothing smoothing(0.99);
  EXPECT_DOUBLE_EQ(smoothing.next(11), 11);
  EXPECT_DOUBLE_EQ(smoothing.next(11), 11);
}

TEST(Smoothing, WeighsThePastAsItsFormulaSays) {
  Smoothing smoothing(0.5);
  EXPECT_EQ(smoothing.next(4), 4);
  EXPECT_DOUBLE_EQ(smoothing.next(1), (0.25 * 4 + 0.5 * 1) / 0.75);
}

// wandb #2202: one NaN must neither vanish nor spoil everything after it.
TEST(Smoothing, PassesOverWhatIsNotFinite) {
  Smoothing with(0.9), without(0.9);
  EXPECT_EQ(with.next(2), without.next(2));
  EXPECT_TRUE(std::isnan(with.next(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(with.next(-std::numeric_limits<double>::infinity())));
  EXPECT_EQ(with.next(5), without.next(5));
}

}  // namespace
}  // namespace evenkeel::gui
