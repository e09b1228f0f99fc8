// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/optim/adamw.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

namespace evenkeel {

void applyAdamW(const AdamWState& state, const AdamWStep& settings) {
  const std::size_t count = state.parameters.size();
  assert(state.gradients.size() == count && state.firstMoments.size() == count && state.secondMoments.size() == count);
  const auto steps = static_cast<double>(settings.step);
  const double correction1 = 1.0 - std::pow(settings.beta1, steps);
  const double correction2 = 1.0 - std::pow(settings.beta2, steps);
  const auto keep = static_cast<float>(1.0 - settings.learningRate * settings.weightDecay);
  const auto rate = static_cast<float>(settings.learningRate / correction1);
  const auto scale = static_cast<float>(1.0 / std::sqrt(correction2));
  const auto beta1 = static_cast<float>(settings.beta1), beta2 = static_cast<float>(settings.beta2);
  const auto gradientScale = static_cast<float>(settings.gradientScale);
  // never 0: an element without any gradient yet would divide 0 by 0
  const float epsilon = std::max(static_cast<float>(settings.epsilon), std::numeric_limits<float>::min());
  float* const parameters = state.parameters.data();
  float* const first = state.firstMoments.data();
  float* const second = state.secondMoments.data();
  const float* const gradients = state.gradients.data();
  for (std::size_t i = 0; i < count; ++i) {
    const float gradient = gradientScale * gradients[i];
    first[i] = beta1 * first[i] + (1.0F - beta1) * gradient;
    second[i] = beta2 * second[i] + (1.0F - beta2) * gradient * gradient;
    parameters[i] = keep * parameters[i] - rate * first[i] / (std::sqrt(second[i]) * scale + epsilon);
  }
}

double sumOfSquares(std::span<const float> values) {
  constexpr std::size_t kLanes = 8;  // independent sums, so that the compiler may use vectors without changing the order
  std::array<double, kLanes> sums{};
  const std::size_t whole = values.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(values[i + lane]);
      sums[lane] += value * value;
    }
  }
  double sum = 0;
  for (const double lane : sums) sum += lane;
  for (std::size_t i = whole; i < values.size(); ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

}  // namespace evenkeel
