// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The ops of each kind of unit of a decoder (core/model/op.h) on the weights of one tp shard. Shapes: B samples of a micro-batch,
// S tokens of a sequence, T = B x S, H hidden, A heads, K key and value heads, D width of a head, F inner width of the MLP, V
// padded and R real vocabulary, C context; A, K, F and V are those of the shard. Biases may be undefined: the model has none.
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/model/model.h"
#include "runtime/nn/dropout.h"
#include "runtime/nn/op_step.h"
#include "runtime/nn/tensor_parallel.h"

namespace evenkeel {

struct EmbeddingWeights {
  at::Tensor token_VH, position_CH;  // no positions: rotary ones come with the queries and keys
  std::int64_t firstToken = 0;       // the shard's rows are tokens [firstToken, firstToken + V)
};

struct NormWeights {
  at::Tensor weight_H, bias_H;
  Norm kind = Norm::LayerNorm;
  double epsilon = 1e-5;
};

struct LinearWeights {
  at::Tensor weight_OI, bias_O;  // output and input features
};

struct AttentionWeights {
  NormWeights norm;
  LinearWeights query, key, value, projection;
  std::int64_t heads = 1, kvHeads = 1, headDim = 1;
  Position position = Position::Learned;
  double rotaryBase = 10'000.0;
  int layer = 0;  // of the model: dropout depends on it
};

struct MlpWeights {
  NormWeights norm;
  LinearWeights gate, fc1, fc2;  // gate: undefined where the MLP is not gated
  Activation activation = Activation::Gelu;
  int layer = 0;
};

struct HeadWeights {
  NormWeights norm;
  at::Tensor token_VH;
  std::int64_t firstToken = 0;
  std::int64_t vocab = 1;  // R of the whole model
};

/// The same ops on tensors that are stored in fp16 but computed in fp32: for devices without arithmetic of their own for it
/// (LibTorch's CPU). What leaves an op is rounded, and overflows, as fp16 does.
[[nodiscard]] std::vector<OpStep> storedInHalf(std::vector<OpStep> steps);

/// x_BSH = token[tokens_BS] + position[0..S).
[[nodiscard]] std::vector<OpStep> embeddingOps(const EmbeddingWeights& weights, const TensorParallel& group);
/// x_BSH + projection(causal attention(norm(x_BSH))).
[[nodiscard]] std::vector<OpStep> attentionOps(const AttentionWeights& weights, const TensorParallel& group,
                                               const Dropout& dropout = {});
/// x_BSH + fc2(GELU(fc1(norm(x_BSH)))), gated: x_BSH + fc2(SiLU(gate(norm(x_BSH))) * fc1(norm(x_BSH))).
[[nodiscard]] std::vector<OpStep> mlpOps(const MlpWeights& weights, const TensorParallel& group, const Dropout& dropout = {});
/// The sum of the cross entropies of all tokens, one double, the same on every shard. Padded rows of the vocabulary take no part:
/// no logit, no gradient.
[[nodiscard]] std::vector<OpStep> headOps(const HeadWeights& weights, const TensorParallel& group);

}  // namespace evenkeel
