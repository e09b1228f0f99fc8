// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/optim/adamw_tensors.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace evenkeel {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 24U;  // elements at once

/// What the ops shall round to fp32 is rounded before.
double single(double value) { return static_cast<double>(static_cast<float>(value)); }

template <class Work>
void inPieces(std::int64_t elements, const Work& work) {
  for (std::int64_t first = 0; first < elements; first += kPiece) work(first, std::min(kPiece, elements - first));
}

}  // namespace

void applyAdamW(const AdamWTensors& state, const AdamWStep& settings) {
  assert(state.parameters.numel() == state.gradients.numel() && state.parameters.numel() == state.firstMoments.numel());
  const at::NoGradGuard noGrad;
  const auto steps = static_cast<double>(settings.step);
  const double correction1 = 1.0 - std::pow(settings.beta1, steps);
  const double correction2 = 1.0 - std::pow(settings.beta2, steps);
  const double keep = single(1.0 - settings.learningRate * settings.weightDecay);
  const double rate = single(settings.learningRate / correction1);
  const double scale = single(1.0 / std::sqrt(correction2));
  const double epsilon = std::max(single(settings.epsilon), static_cast<double>(std::numeric_limits<float>::min()));
  const double beta1 = single(settings.beta1), beta2 = single(settings.beta2);
  inPieces(state.parameters.numel(), [&](std::int64_t begin, std::int64_t count) {
    const at::Tensor parameters = state.parameters.narrow(0, begin, count), first = state.firstMoments.narrow(0, begin, count),
                     second = state.secondMoments.narrow(0, begin, count);
    const at::Tensor gradient = state.gradients.narrow(0, begin, count) * single(settings.gradientScale);
    first.mul_(beta1).add_(gradient * single(1.0 - beta1));
    second.mul_(beta2).add_((gradient * single(1.0 - beta2)).mul_(gradient));
    const at::Tensor divisor = second.sqrt().mul_(scale).add_(epsilon);
    parameters.mul_(keep).sub_((first * rate).div_(divisor));
  });
}

at::Tensor sumOfSquares(const at::Tensor& values) {
  const at::NoGradGuard noGrad;
  const at::Tensor sum = at::zeros({}, values.options().dtype(at::kDouble));
  inPieces(values.numel(), [&](std::int64_t begin, std::int64_t count) {
    const at::Tensor piece = values.narrow(0, begin, count).to(at::kDouble);
    sum.add_(piece.mul_(piece).sum());
  });
  return sum;
}

}  // namespace evenkeel
