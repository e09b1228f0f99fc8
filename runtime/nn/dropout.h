// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/nn/op_step.h"

namespace evenkeel {

struct Dropout {
  double probability = 0;
  std::uint64_t seed = 1;
  bool byTensors = false;  // draw on the device of what is dropped, with ops of LibTorch; the same bits
};

/// Which elements of the unsplit tensor x holds: of each of its samples (dimension 0, in equal parts), elements [first, ...) of
/// `perSample`.
struct DropoutPart {
  std::int64_t samples = 1, perSample = 1, first = 0;
};

/// x / (1 - probability) where it is kept, 0 elsewhere. What is kept depends on (seed, step, sample of the global batch, layer,
/// op, element of the unsplit tensor) only: the same under any plan, and when it is computed again. Keeps one byte an element.
/// On the CPU, or, byTensors, on the device of x by about a hundred ops that make integers of 2 bytes an element each.
[[nodiscard]] at::Tensor drop(const at::Tensor& x, const Dropout& dropout, Op op, int layer, const Batch& batch,
                              const DropoutPart& part);

}  // namespace evenkeel
