// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>

namespace evenkeel {

/// Settings of one AdamW step. Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019.
struct AdamWStep {
  double learningRate = 0, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weightDecay = 0;
  double gradientScale = 1;  // of every gradient before it is used: clipping
  std::int64_t step = 1;     // from 1: corrects the bias of the moments
};

/// Neighbouring elements of the flat buffers of one rank; all spans have the same length.
struct AdamWState {
  std::span<float> parameters;
  std::span<const float> gradients;
  std::span<float> firstMoments, secondMoments;
};

/// Decay first (parameter -= rate x weightDecay x parameter), then the Adam step. Element by element: the same bits on every
/// holder of a block that has the same gradients.
void applyAdamW(const AdamWState& state, const AdamWStep& settings);

/// In double precision and in a fixed order.
[[nodiscard]] double sumOfSquares(std::span<const float> values);

}  // namespace evenkeel
