// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/optim/adamw.h"

namespace evenkeel {

/// As AdamWState, for memory that no loop of ours can reach: a card's. All fp32, of one dimension and one device.
struct AdamWTensors {
  at::Tensor parameters, gradients, firstMoments, secondMoments;
};

/// The same arithmetic in the same order as on spans, each step an op of LibTorch that rounds as IEEE says: the same bits, so that
/// holders on cards and on CPU cores stay equal. Takes three tensors of at most 64 MiB for a while.
void applyAdamW(const AdamWTensors& state, const AdamWStep& settings);

/// In double precision, as one number on the device.
[[nodiscard]] at::Tensor sumOfSquares(const at::Tensor& values);

}  // namespace evenkeel
