// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/op_work.h"

#include <algorithm>
#include <cassert>

namespace evenkeel {
namespace {

constexpr std::int64_t kMaskBytes = 1;   // of a dropout mask, per element
constexpr std::int64_t kFloatBytes = 4;  // softmax and loss over the vocabulary are computed in fp32
/// A fused attention kernel computes the scores again in its backward: 5 products where the forward had 2 (FlashAttention-2,
/// 2023).
constexpr double kFusedBackward = 2.5;

/// Sizes in elements on one device of the tp group.
struct Shapes {
  std::int64_t bytes, tokens, hidden, queries, keys, scores, ffn, vocab;  // keys: those of K alone, as many as of V
  std::int64_t ownTokens;  // whose norms, dropouts and residual stream the device holds: all, or its part of them

  Shapes(const Model& model, const Training& training, int tp, std::int64_t samples)
      : bytes(bytesOf(training.precision)),
        tokens(training.sequenceLength * samples),
        hidden(model.hidden),
        queries(model.heads * model.headDim / tp),
        keys(model.kvHeads * model.headDim / std::min(tp, model.kvHeads)),  // KV heads are replicated beyond their number
        scores(std::max<std::int64_t>(1, model.heads / tp) * training.sequenceLength * tokens),
        ffn(model.ffn / tp),
        vocab(model.paddedVocab() / tp),
        ownTokens(training.sequenceParallel ? (tokens + tp - 1) / tp : tokens) {}

  [[nodiscard]] Bytes residual() const { return {bytes * tokens * hidden}; }
  [[nodiscard]] Bytes ownResidual() const { return {bytes * ownTokens * hidden}; }
};

Bytes of(std::int64_t elements, std::int64_t bytes) { return {elements * bytes}; }

/// y = x W^T: (tokens, in) x (in, out).
OpWork matrixProduct(const Shapes& s, std::int64_t in, std::int64_t out, bool bias, std::int64_t biasSize) {
  OpWork work;
  work.forward = {2.0 * static_cast<double>(s.tokens) * static_cast<double>(in) * static_cast<double>(out)};
  work.backward = 2.0 * work.forward;
  work.parameters = in * out + (bias ? biasSize : 0);
  work.forwardTraffic = of(s.tokens * (in + out) + work.parameters, s.bytes);
  work.saved = work.input = of(s.tokens * in, s.bytes);
  // Gradients of both sides, and the weight's before it is added to the sum.
  work.transient = of(s.tokens * (in + out) + work.parameters, s.bytes);
  return work;
}

OpWork norm(const Model& model, const Shapes& s) {
  OpWork work;
  work.parameters = s.hidden * (model.norm == Norm::LayerNorm && model.bias ? 2 : 1);
  work.forwardTraffic = 2 * s.ownResidual();
  work.saved = work.input = s.ownResidual();
  work.transient = 2 * s.ownResidual();
  return work;
}

/// Dropout at rate 0 and the residual sum; GPT keeps the mask (the paper's count, and never too little).
OpWork residualSum(const Shapes& s, bool keepsMask) {
  OpWork work;
  work.forwardTraffic = 3 * s.ownResidual();
  work.input = s.ownResidual();
  work.transient = 2 * s.ownResidual();
  if (keepsMask) work.saved = work.dropoutSaved = of(s.ownTokens * s.hidden, kMaskBytes);
  return work;
}

/// One of the two products of attention: scores = Q K^T, context = scores V.
OpWork attentionProduct(const Model& model, const Shapes& s, bool fused) {
  OpWork work;
  work.forward = {2.0 * static_cast<double>(s.scores) * static_cast<double>(model.headDim)};
  work.backward = (fused ? kFusedBackward : 2.0) * work.forward;
  work.forwardTraffic = of(s.tokens * (s.queries + s.keys) + (fused ? 0 : s.scores), s.bytes);
  work.transient = of(s.tokens * (s.queries + 2 * s.keys) + (fused ? 0 : s.scores), s.bytes);
  return work;
}

/// What the table says. A layer's input is the residual tensor before it; the first one reads the sample, about as much.
OpWork opaqueWork(const Model& model, const Training& training, Op op, std::int64_t samples) {
  OpWork work;
  const OpaqueLayer* const layer = opaqueLayer(model, op);
  work.runs = layer != nullptr;
  if (layer == nullptr) return work;
  const auto count = static_cast<double>(samples);
  work.forward = count * layer->forward;
  work.backward = 2.0 * work.forward;
  work.parameters = layer->parameters;
  work.saved = samples * layer->saved;
  work.input = of(samples * training.sequenceLength * model.hidden, bytesOf(training.precision));
  work.transient = samples * layer->transient;
  return work;
}

}  // namespace

OpWork opWork(const Model& model, const Training& training, Op op, int tp, std::int64_t samples) {
  assert(tp >= 1 && samples >= 1);
  if (model.opaque) return opaqueWork(model, training, op, samples);
  const Shapes s(model, training, tp, samples);
  const bool fused = training.attention == AttentionKernel::Fused;
  const bool keepsMask = model.family() == Family::Gpt;
  const Bytes reduced = tp > 1 ? s.residual() : Bytes{};
  OpWork work;
  switch (op) {
    case Op::Embedding:
      work.parameters = s.vocab * s.hidden + (model.position == Position::Learned ? model.context * s.hidden : 0);
      work.forwardTraffic = 4 * s.residual();
      if (keepsMask) work.saved = work.dropoutSaved = of(s.ownTokens * s.hidden, kMaskBytes);
      work.input = of(s.tokens, 8);                                         // token numbers
      work.transient = 2 * s.residual() + of(s.vocab * s.hidden, s.bytes);  // the table's gradient before it is added
      work.forwardReduced = reduced;
      break;
    case Op::Norm1:
    case Op::Norm2:
    case Op::FinalNorm: work = norm(model, s); break;
    case Op::Qkv:
      work = matrixProduct(s, s.hidden, s.queries + 2 * s.keys, model.hasQkvBias(), s.queries + 2 * s.keys);
      work.saved = work.input = s.ownResidual();
      work.backwardReduced = reduced;
      break;
    case Op::Score:
      work = attentionProduct(model, s, fused);
      work.saved = of(s.tokens * (s.queries + s.keys), s.bytes);
      work.input = of(s.tokens * (s.queries + 2 * s.keys), s.bytes);
      break;
    case Op::Softmax:
      work.runs = !fused;
      if (fused) break;
      work.forwardTraffic = of(4 * s.scores, s.bytes);  // scale and mask, then softmax
      work.saved = work.input = of(s.scores, s.bytes);
      work.transient = 2 * work.saved;  // gradients of both sides
      break;
    case Op::AttentionDropout:
      work.runs = false;
      if (fused) break;
      work.forwardTraffic = of(s.scores, 2 * s.bytes + kMaskBytes);
      work.input = of(s.scores, s.bytes);
      if (keepsMask) work.saved = work.dropoutSaved = of(s.scores, kMaskBytes);
      break;
    case Op::Context:
      work = attentionProduct(model, s, fused);
      work.input = of(s.tokens * s.keys + (fused ? 0 : s.scores), s.bytes);
      // Without dropout the probabilities are those that the softmax keeps; with a fused kernel one fp32 a row remains of them.
      work.dropoutSaved = of(!fused && keepsMask ? s.scores : 0, s.bytes);
      work.saved = of(s.tokens * s.keys, s.bytes) + work.dropoutSaved;
      if (fused) work.saved += of(s.scores / training.sequenceLength, kFloatBytes);
      break;
    case Op::Projection:
      work = matrixProduct(s, s.queries, s.hidden, model.bias, s.hidden);
      work.forwardReduced = reduced;
      break;
    case Op::Dropout1:
    case Op::Dropout2: work = residualSum(s, keepsMask); break;
    case Op::Fc1: {
      const std::int64_t width = model.gated ? 2 * s.ffn : s.ffn;  // gated: two matrices here, three in all
      work = matrixProduct(s, s.hidden, width, model.bias, width);
      work.saved = work.input = s.ownResidual();
      work.backwardReduced = reduced;
      break;
    }
    case Op::Activation:
      work.input = of(s.tokens * s.ffn * (model.gated ? 2 : 1), s.bytes);
      work.saved = of(s.tokens * s.ffn * (model.gated ? 3 : 1), s.bytes);  // gated: both inputs and the activated gate
      work.forwardTraffic = of(s.tokens * s.ffn * (model.gated ? 5 : 2), s.bytes);
      work.transient = of(s.tokens * s.ffn * (model.gated ? 4 : 2), s.bytes);
      break;
    case Op::Fc2:
      work = matrixProduct(s, s.ffn, s.hidden, model.bias, s.hidden);
      work.forwardReduced = reduced;
      break;
    case Op::Head:
      work = matrixProduct(s, s.hidden, s.vocab, false, 0);
      work.saved = work.input = s.ownResidual();
      work.backwardReduced = reduced;
      break;
    case Op::Loss:
      work.forwardTraffic = of(s.tokens * s.vocab, s.bytes + 3 * kFloatBytes);
      work.saved = of(s.tokens * s.vocab, kFloatBytes);
      work.input = of(s.tokens * s.vocab, s.bytes);
      work.transient = of(s.tokens * s.vocab, s.bytes + 2 * kFloatBytes);  // logits, their fp32 copy and gradient
      break;
  }
  return work;
}

Flops flopsPerSample(const Model& model, const Training& training) {
  Flops sum;
  const auto add = [&](UnitKind kind, double count) {
    // Three times the forward: what a fused kernel computes twice is not the model's work.
    for (const Op op : opsOf(kind)) sum += 3.0 * count * opWork(model, training, op, 1, 1).forward;
  };
  if (model.opaque) add(UnitKind::Embedding, 1);
  add(UnitKind::Attention, model.layers);
  add(UnitKind::Mlp, model.layers);
  add(UnitKind::Head, 1);
  return sum;
}

}  // namespace evenkeel
