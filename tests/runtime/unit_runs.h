// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/nn/units.h"

namespace evenkeel {

/// Whole units of one shard as functions.
inline at::Tensor runOps(const std::vector<OpStep>& ops, const at::Tensor& x, const Batch& batch = {}) {
  Slots slots;
  slots[Slot::Residual] = x;
  for (const OpStep& step : ops) step.run(slots, batch);
  return slots.take(Slot::Residual);
}
inline const TensorParallel& oneShard() {
  static const TensorParallel group;
  return group;
}
inline at::Tensor embed(const at::Tensor& tokens_BS, const EmbeddingWeights& weights) {
  return runOps(embeddingOps(weights, oneShard()), tokens_BS);
}
inline at::Tensor attention(const at::Tensor& x_BSH, const AttentionWeights& weights) {
  return runOps(attentionOps(weights, oneShard()), x_BSH);
}
inline at::Tensor mlp(const at::Tensor& x_BSH, const MlpWeights& weights) { return runOps(mlpOps(weights, oneShard()), x_BSH); }
inline at::Tensor sumOfTokenLosses(const at::Tensor& x_BSH, const at::Tensor& targets_BS, const HeadWeights& weights) {
  return runOps(headOps(weights, oneShard()), x_BSH, {.targets_BS = targets_BS});
}

}  // namespace evenkeel
