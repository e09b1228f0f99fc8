// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The forward pass of each kind of unit of a GPT decoder. Shapes: B samples of a micro-batch, S tokens of a sequence, T = B x S,
// H hidden, A heads, K key and value heads, D width of a head, F inner width of the MLP, V padded and R real vocabulary, C
// context. Biases may be undefined: the model has none.
#include <ATen/core/Tensor.h>

namespace evenkeel {

struct EmbeddingWeights {
  at::Tensor token_VH, position_CH;
};
/// x_BSH = token[tokens_BS] + position[0..S).
[[nodiscard]] at::Tensor embed(const at::Tensor& tokens_BS, const EmbeddingWeights& weights);

struct NormWeights {
  at::Tensor weight_H, bias_H;
};

struct LinearWeights {
  at::Tensor weight_OI, bias_O;  // output and input features
};

struct AttentionWeights {
  NormWeights norm;
  LinearWeights query, key, value, projection;
  std::int64_t heads = 1, kvHeads = 1, headDim = 1;
};
/// x_BSH + projection(causal attention(LayerNorm(x_BSH))).
[[nodiscard]] at::Tensor attention(const at::Tensor& x_BSH, const AttentionWeights& weights);

struct MlpWeights {
  NormWeights norm;
  LinearWeights fc1, fc2;
};
/// x_BSH + fc2(GELU(fc1(LayerNorm(x_BSH)))).
[[nodiscard]] at::Tensor mlp(const at::Tensor& x_BSH, const MlpWeights& weights);

struct HeadWeights {
  NormWeights norm;
  at::Tensor token_VH;
  std::int64_t vocab = 1;  // R
};
/// Sum of the cross entropies of all tokens, one double. Padded rows of the vocabulary take no part: no logit, no gradient.
[[nodiscard]] at::Tensor sumOfTokenLosses(const at::Tensor& x_BSH, const at::Tensor& targets_BS, const HeadWeights& weights);

}  // namespace evenkeel
