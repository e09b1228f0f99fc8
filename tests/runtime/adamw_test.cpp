// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/optim/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/random.h"

namespace evenkeel {
namespace {

TEST(AdamW, FollowsTheFormulasOfThePaper) {
  const CounterRandom random(1, "adamw");
  std::vector<float> parameters(37), first(37), second(37), gradients(37);
  std::vector<double> expected(37), m(37), v(37);
  for (std::size_t i = 0; i < 37; ++i) expected[i] = parameters[i] = static_cast<float>(random.normal(i));
  AdamWStep settings{.learningRate = 0.02, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weightDecay = 0.1};
  for (settings.step = 1; settings.step <= 5; ++settings.step) {
    for (std::size_t i = 0; i < 37; ++i) {
      gradients[i] = static_cast<float>(random.normal(1000U * static_cast<std::uint64_t>(settings.step) + i));
      const double gradient = gradients[i];
      m[i] = 0.9 * m[i] + 0.1 * gradient;
      v[i] = 0.95 * v[i] + 0.05 * gradient * gradient;
      const double mean = m[i] / (1 - std::pow(0.9, settings.step)), square = v[i] / (1 - std::pow(0.95, settings.step));
      expected[i] -= 0.02 * 0.1 * expected[i];
      expected[i] -= 0.02 * mean / (std::sqrt(square) + 1e-8);
    }
    applyAdamW({parameters, gradients, first, second}, settings);
  }
  for (std::size_t i = 0; i < 37; ++i) EXPECT_NEAR(parameters[i], expected[i], 2e-6 * std::max(1.0, std::abs(expected[i]))) << i;
}

TEST(AdamW, OnlyDecaysWhatHasNoGradient) {
  std::vector<float> parameters = {2.0F}, first = {0.0F}, second = {0.0F};
  const std::vector<float> gradients = {0.0F};
  applyAdamW({parameters, gradients, first, second}, {.learningRate = 0.5, .epsilon = 1e-300, .weightDecay = 0.1});
  EXPECT_FLOAT_EQ(parameters[0], 2.0F - 0.5F * 0.1F * 2.0F);
}

TEST(SumOfSquares, CountsEveryElementOnce) {
  for (std::size_t count = 0; count < 40; ++count) {
    std::vector<float> values(count);
    double expected = 0;
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(i) + 0.5F;
      expected += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    EXPECT_DOUBLE_EQ(sumOfSquares(values), expected);
  }
}

}  // namespace
}  // namespace evenkeel
