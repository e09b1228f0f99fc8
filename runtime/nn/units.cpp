// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/nn/units.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace evenkeel {
namespace {

using enum Slot;

/// In single precision at least.
at::Tensor widened(const at::Tensor& x) {
  return x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x;
}

/// A weight in the precision of what it meets; may be undefined.
at::Tensor as(const at::Tensor& weight, const at::Tensor& x) { return weight.defined() ? weight.to(x.scalar_type()) : weight; }

at::Tensor normalise(const at::Tensor& x_BSH, const NormWeights& norm) {
  if (norm.kind == Norm::LayerNorm)
    return at::layer_norm(x_BSH, {x_BSH.size(2)}, as(norm.weight_H, x_BSH), as(norm.bias_H, x_BSH), norm.epsilon);
  const at::Tensor wide_BSH = widened(x_BSH);
  const at::Tensor scale_BS1 = at::rsqrt(wide_BSH.square().mean(-1, true) + norm.epsilon);
  return (wide_BSH * scale_BS1).to(x_BSH.scalar_type()) * as(norm.weight_H, x_BSH);
}

/// Of weights whose output features are sharded.
at::Tensor linear(const at::Tensor& x, const LinearWeights& weights) {
  return at::linear(x, as(weights.weight_OI, x), as(weights.bias_O, x));
}

/// Of weights whose input features are sharded: the bias is added once, to the sum.
at::Tensor linearSum(const at::Tensor& x, const LinearWeights& weights, const TensorParallel& group) {
  if (group.size() == 1) return linear(x, weights);
  const at::Tensor sum = group.sum(at::linear(x, as(weights.weight_OI, x)));
  return weights.bias_O.defined() ? sum + as(weights.bias_O, x) : sum;
}

/// (B, K, S, D) of (B, S, K x D).
at::Tensor splitHeads(const at::Tensor& x, std::int64_t heads, std::int64_t headDim) {
  return x.view({x.size(0), x.size(1), heads, headDim}).transpose(1, 2);
}

/// -inf above the diagonal, 0 elsewhere: a token sees itself and what came before.
at::Tensor causalMask(std::int64_t sequence, const at::TensorOptions& options) {
  return at::full({sequence, sequence}, -std::numeric_limits<float>::infinity(), options).triu_(1);
}

/// Turns the pairs (i, i + D / 2) of every head by position x base^(-2i / D).
at::Tensor rotate(const at::Tensor& x_BKSD, double base) {
  const std::int64_t sequence = x_BKSD.size(2), half = x_BKSD.size(3) / 2;
  const auto options = x_BKSD.options().dtype(at::kDouble).requires_grad(false);
  const at::Tensor frequency_D = at::pow(base, at::arange(half, options) * (-1.0 / static_cast<double>(half)));
  const at::Tensor angle_SD = at::arange(sequence, options).unsqueeze(1) * frequency_D;
  const at::Tensor cosine_SD = angle_SD.cos().to(x_BKSD.scalar_type()), sine_SD = angle_SD.sin().to(x_BKSD.scalar_type());
  const at::Tensor low = x_BKSD.narrow(3, 0, half), high = x_BKSD.narrow(3, half, half);
  return at::cat({low * cosine_SD - high * sine_SD, high * cosine_SD + low * sine_SD}, 3);
}

at::Tensor embed(const at::Tensor& tokens_BS, const EmbeddingWeights& weights, const TensorParallel& group) {
  at::Tensor x_BSH;
  if (group.size() == 1) {
    x_BSH = at::embedding(weights.token_VH, tokens_BS);
  } else {  // tokens of other shards become row 0, and then nothing
    const at::Tensor own_BS = tokens_BS - weights.firstToken;
    const at::Tensor isOther_BS = own_BS.lt(0).logical_or(own_BS.ge(weights.token_VH.size(0)));
    const at::Tensor rows_BSH = at::embedding(weights.token_VH, own_BS.masked_fill(isOther_BS, 0));
    x_BSH = group.sum(rows_BSH.masked_fill(isOther_BS.unsqueeze(-1), 0));
  }
  return weights.position_CH.defined() ? x_BSH + weights.position_CH.narrow(0, 0, tokens_BS.size(1)) : x_BSH;
}

void makeQueries(Slots& slots, const AttentionWeights& weights, const TensorParallel& group) {
  const at::Tensor normed_BSH = group.enter(slots.take(Main));
  const auto heads = [&](const LinearWeights& linearWeights, std::int64_t count) {
    return splitHeads(linear(normed_BSH, linearWeights), count, weights.headDim);
  };
  slots[Query] = heads(weights.query, weights.heads);
  slots[Key] = heads(weights.key, weights.kvHeads);
  slots[Value] = heads(weights.value, weights.kvHeads);
  if (weights.position != Position::Rotary) return;
  slots[Query] = rotate(slots[Query], weights.rotaryBase);
  slots[Key] = rotate(slots[Key], weights.rotaryBase);
}

/// (B x A, S, D): query heads that are neighbours share a key and value head.
at::Tensor flatHeads(const at::Tensor& x_BKSD, std::int64_t heads) {
  const at::Tensor x_BASD = x_BKSD.size(1) == heads ? x_BKSD : x_BKSD.repeat_interleave(heads / x_BKSD.size(1), 1);
  return x_BASD.reshape({x_BASD.size(0) * heads, x_BASD.size(2), x_BASD.size(3)});
}

at::Tensor scores(const at::Tensor& query_BASD, const at::Tensor& key_BKSD) {
  const std::int64_t heads = query_BASD.size(1), sequence = query_BASD.size(2);
  const at::Tensor query = flatHeads(query_BASD, heads), key = flatHeads(key_BKSD, heads);
  const at::Tensor mask = causalMask(sequence, query.options().requires_grad(false)).expand({query.size(0), sequence, sequence});
  return at::baddbmm(mask, query, key.transpose(1, 2), 1.0, 1.0 / std::sqrt(static_cast<double>(query.size(2))));
}

at::Tensor contextOf(const at::Tensor& weights_NSS, const at::Tensor& value_BKSD, std::int64_t heads) {
  const std::int64_t batch = value_BKSD.size(0), sequence = value_BKSD.size(2), width = value_BKSD.size(3);
  const at::Tensor context = at::bmm(weights_NSS, flatHeads(value_BKSD, heads));
  return context.view({batch, heads, sequence, width}).transpose(1, 2).reshape({batch, sequence, heads * width});
}

/// The shard's logits of real tokens; of padded ones there are none. Maybe no column at all.
at::Tensor logits(const at::Tensor& normed_BSH, const HeadWeights& weights, const TensorParallel& group) {
  const std::int64_t real = std::clamp<std::int64_t>(weights.vocab - weights.firstToken, 0, weights.token_VH.size(0));
  const bool isPadded = real < weights.token_VH.size(0);
  const at::Tensor token_RH = isPadded ? weights.token_VH.narrow(0, 0, real) : weights.token_VH;
  return at::linear(group.enter(normed_BSH).view({-1, normed_BSH.size(2)}), as(token_RH, normed_BSH));
}

/// Cross entropies of sharded logits: log(sum of exp(logit - largest)) + largest - logit of the target.
at::Tensor lossesOfShards(const at::Tensor& logits_TR, const at::Tensor& targets_T, std::int64_t firstToken,
                          const TensorParallel& group) {
  const std::int64_t columns = logits_TR.size(1);
  const at::Tensor largest_T = group.largest(columns > 0 ? logits_TR.detach().amax(1)
                                                         : at::full({logits_TR.size(0)}, -std::numeric_limits<float>::infinity(),
                                                                    logits_TR.options().requires_grad(false)));
  if (columns == 0) {  // nothing of ours, but the others need us; logits_TR joins in, so that backward comes by
    const at::Tensor sums_2T = group.sum(at::zeros({2, logits_TR.size(0)}, largest_T.options()) + logits_TR.sum());
    return sums_2T[0].log() - sums_2T[1];
  }
  const at::Tensor shifted_TR = logits_TR - largest_T.unsqueeze(1);
  const at::Tensor own_T = targets_T - firstToken;
  const at::Tensor isOther_T = own_T.lt(0).logical_or(own_T.ge(columns));
  const at::Tensor target_T =
      shifted_TR.gather(1, own_T.masked_fill(isOther_T, 0).unsqueeze(1)).squeeze(1).masked_fill(isOther_T, 0);
  const at::Tensor sums_2T = group.sum(at::stack({shifted_TR.exp().sum(1), target_T}));
  return sums_2T[0].log() - sums_2T[1];
}

at::Tensor sumOfLosses(const at::Tensor& computed_TR, const at::Tensor& targets_BS, const HeadWeights& weights,
                       const TensorParallel& group) {
  const at::Tensor logits_TR = widened(computed_TR);
  const at::Tensor targets_T = targets_BS.reshape({-1});
  const at::Tensor losses_T = group.size() == 1 ? at::cross_entropy_loss(logits_TR, targets_T, {}, at::Reduction::None)
                                                : lossesOfShards(logits_TR, targets_T, weights.firstToken, group);
  return losses_T.sum(at::kDouble);
}

OpStep normOp(Op op, const NormWeights& weights) {
  return {op, slots({Residual}), slots({Main}), [weights](Slots& s, const Batch&) { s[Main] = normalise(s[Residual], weights); }};
}

OpStep addOp(Op op, int layer, const Dropout& dropout) {
  return {op, slots({Residual, Main}), slots({Residual, Main}), [=](Slots& s, const Batch& batch) {
            at::Tensor added_BSH = s.take(Main);
            if (dropout.probability > 0 && batch.trains) {
              const std::int64_t samples = added_BSH.size(0);
              added_BSH = drop(added_BSH, dropout, op, layer, batch, {samples, added_BSH.numel() / samples, 0});
            }
            s[Residual] = s[Residual] + added_BSH;
          }};
}

OpStep attentionDropoutOp(const AttentionWeights& weights, const TensorParallel& group, const Dropout& dropout) {
  if (dropout.probability == 0) return {Op::AttentionDropout, {}, {}, [](Slots&, const Batch&) {}};
  return {Op::AttentionDropout, slots({Main}), slots({Main}),
          [heads = weights.heads, layer = weights.layer, &group, dropout](Slots& s, const Batch& batch) {
            if (!batch.trains) return;
            const at::Tensor weights_NSS = s.take(Main);  // N = B x A
            const std::int64_t samples = weights_NSS.size(0) / heads, own = weights_NSS.numel() / samples;
            s[Main] = drop(weights_NSS, dropout, Op::AttentionDropout, layer, batch,
                           {samples, own * group.size(), own * group.shard()});
          }};
}

}  // namespace

std::vector<OpStep> storedInHalf(std::vector<OpStep> steps) {
  for (OpStep& step : steps) {
    step.run = [compute = std::move(step.run)](Slots& s, const Batch& batch) {
      const auto is = [](const at::Tensor& tensor, at::ScalarType type) {
        return tensor.defined() && tensor.scalar_type() == type;
      };
      const Slots stored = s;
      for (at::Tensor& tensor : s.tensors) {
        if (is(tensor, at::kHalf)) tensor = tensor.to(at::kFloat);
      }
      const Slots wide = s;
      compute(s, batch);
      for (std::size_t i = 0; i < kSlotCount; ++i) {
        at::Tensor& tensor = s.tensors[i];
        if (!is(tensor, at::kFloat)) continue;
        // What the op has left alone stays the very tensor, with its history: a recomputed segment knows only of what its ops
        // write.
        tensor = tensor.is_same(wide.tensors[i]) ? stored.tensors[i] : tensor.to(at::kHalf);
      }
    };
  }
  return steps;
}

std::vector<OpStep> embeddingOps(const EmbeddingWeights& weights, const TensorParallel& group) {
  return {{Op::Embedding, slots({Residual}), slots({Residual}),
           [weights, &group](Slots& s, const Batch&) { s[Residual] = embed(s[Residual], weights, group); }}};
}

std::vector<OpStep> attentionOps(const AttentionWeights& weights, const TensorParallel& group, const Dropout& dropout) {
  assert(weights.heads % weights.kvHeads == 0);
  const auto heads = weights.heads;
  return {normOp(Op::Norm1, weights.norm),
          {Op::Qkv, slots({Main}), slots({Main, Query, Key, Value}),
           [weights, &group](Slots& s, const Batch&) { makeQueries(s, weights, group); }},
          {Op::Score, slots({Query, Key}), slots({Main, Query, Key}),
           [](Slots& s, const Batch&) { s[Main] = scores(s.take(Query), s.take(Key)); }},
          {Op::Softmax, slots({Main}), slots({Main}), [](Slots& s, const Batch&) { s[Main] = at::softmax(s.take(Main), -1); }},
          attentionDropoutOp(weights, group, dropout),
          {Op::Context, slots({Main, Value}), slots({Main, Value}),
           [heads](Slots& s, const Batch&) { s[Main] = contextOf(s.take(Main), s.take(Value), heads); }},
          {Op::Projection, slots({Main}), slots({Main}),
           [w = weights.projection, &group](Slots& s, const Batch&) { s[Main] = linearSum(s.take(Main), w, group); }},
          addOp(Op::Dropout1, weights.layer, dropout)};
}

std::vector<OpStep> mlpOps(const MlpWeights& weights, const TensorParallel& group, const Dropout& dropout) {
  const bool isGated = weights.gate.weight_OI.defined();
  const auto fc1 = [weights, isGated, &group](Slots& s, const Batch&) {
    const at::Tensor normed_BSH = group.enter(s.take(Main));
    if (isGated) s[Gate] = linear(normed_BSH, weights.gate);
    s[Main] = linear(normed_BSH, weights.fc1);
  };
  const auto activation = [isGated, gelu = weights.activation == Activation::GeluTanh ? "tanh" : "none"](Slots& s, const Batch&) {
    s[Main] = isGated ? at::silu(s.take(Gate)) * s.take(Main) : at::gelu(s.take(Main), gelu);
  };
  return {normOp(Op::Norm2, weights.norm),
          {Op::Fc1, slots({Main}), slots({Main, Gate}), fc1},
          {Op::Activation, slots({Main, Gate}), slots({Main, Gate}), activation},
          {Op::Fc2, slots({Main}), slots({Main}),
           [w = weights.fc2, &group](Slots& s, const Batch&) { s[Main] = linearSum(s.take(Main), w, group); }},
          addOp(Op::Dropout2, weights.layer, dropout)};
}

std::vector<OpStep> headOps(const HeadWeights& weights, const TensorParallel& group) {
  return {normOp(Op::FinalNorm, weights.norm),
          {Op::Head, slots({Main}), slots({Residual, Main}),
           [weights, &group](Slots& s, const Batch&) {
             (void)s.take(Residual);
             s[Main] = logits(s.take(Main), weights, group);
           }},
          {Op::Loss, slots({Main}), slots({Residual, Main}), [weights, &group](Slots& s, const Batch& batch) {
             s[Residual] = sumOfLosses(s.take(Main), batch.targets_BS, weights, group);
           }}};
}

}  // namespace evenkeel
