// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/nn/units.h"

#include <ATen/ATen.h>

#include <cassert>
#include <cmath>
#include <limits>

namespace evenkeel {
namespace {

constexpr double kNormEpsilon = 1e-5;  // GPT-2

at::Tensor normalise(const at::Tensor& x_BSH, const NormWeights& norm) {
  return at::layer_norm(x_BSH, {x_BSH.size(2)}, norm.weight_H, norm.bias_H, kNormEpsilon);
}

at::Tensor linear(const at::Tensor& x, const LinearWeights& weights) { return at::linear(x, weights.weight_OI, weights.bias_O); }

/// (B x K, S, D) of (B, S, K x D).
at::Tensor splitHeads(const at::Tensor& x, std::int64_t heads, std::int64_t headDim) {
  return x.view({x.size(0), x.size(1), heads, headDim}).transpose(1, 2);
}

/// -inf above the diagonal, 0 elsewhere: a token sees itself and what came before.
at::Tensor causalMask(std::int64_t sequence, const at::TensorOptions& options) {
  return at::full({sequence, sequence}, -std::numeric_limits<float>::infinity(), options).triu_(1);
}

}  // namespace

at::Tensor embed(const at::Tensor& tokens_BS, const EmbeddingWeights& weights) {
  return at::embedding(weights.token_VH, tokens_BS) + weights.position_CH.narrow(0, 0, tokens_BS.size(1));
}

at::Tensor attention(const at::Tensor& x_BSH, const AttentionWeights& weights) {
  const std::int64_t batch = x_BSH.size(0), sequence = x_BSH.size(1), heads = weights.heads, width = weights.headDim;
  assert(heads % weights.kvHeads == 0);
  const at::Tensor normed_BSH = normalise(x_BSH, weights.norm);
  const at::Tensor query_BASD = splitHeads(linear(normed_BSH, weights.query), heads, width);
  at::Tensor key_BASD = splitHeads(linear(normed_BSH, weights.key), weights.kvHeads, width);
  at::Tensor value_BASD = splitHeads(linear(normed_BSH, weights.value), weights.kvHeads, width);
  if (weights.kvHeads != heads) {  // grouped queries: neighbouring query heads share a key and value head
    key_BASD = key_BASD.repeat_interleave(heads / weights.kvHeads, 1);
    value_BASD = value_BASD.repeat_interleave(heads / weights.kvHeads, 1);
  }
  const auto flat = [&](const at::Tensor& x_BASD) { return x_BASD.reshape({batch * heads, sequence, width}); };
  const at::Tensor mask = causalMask(sequence, x_BSH.options()).expand({batch * heads, sequence, sequence});
  const at::Tensor scores =
      at::baddbmm(mask, flat(query_BASD), flat(key_BASD).transpose(1, 2), 1.0, 1.0 / std::sqrt(static_cast<double>(width)));
  const at::Tensor context = at::bmm(at::softmax(scores, -1), flat(value_BASD));
  const at::Tensor context_BSH =
      context.view({batch, heads, sequence, width}).transpose(1, 2).reshape({batch, sequence, heads * width});
  return x_BSH + linear(context_BSH, weights.projection);
}

at::Tensor mlp(const at::Tensor& x_BSH, const MlpWeights& weights) {
  const at::Tensor inner_BSF = at::gelu(linear(normalise(x_BSH, weights.norm), weights.fc1));
  return x_BSH + linear(inner_BSF, weights.fc2);
}

at::Tensor sumOfTokenLosses(const at::Tensor& x_BSH, const at::Tensor& targets_BS, const HeadWeights& weights) {
  const bool isPadded = weights.token_VH.size(0) > weights.vocab;
  const at::Tensor token_RH = isPadded ? weights.token_VH.narrow(0, 0, weights.vocab) : weights.token_VH;
  const at::Tensor normed_TH = normalise(x_BSH, weights.norm).view({-1, x_BSH.size(2)});
  const at::Tensor logits_TR = at::linear(normed_TH, token_RH);
  const at::Tensor losses_T = at::cross_entropy_loss(logits_TR, targets_BS.reshape({-1}), {}, at::Reduction::None);
  return losses_T.sum(at::kDouble);
}

}  // namespace evenkeel
