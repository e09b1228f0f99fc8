// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/op.h"

#include <cassert>

namespace evenkeel {
namespace {

struct Words {
  std::string_view name, label;
};

constexpr std::array<Words, kOpCount> kWords = {{
    {"embedding", "Emb"}, {"norm1", "LN1"}, {"qkv", "Qkv"}, {"score", "Sco"}, {"softmax", "AS"},
    {"attention_dropout", "AD"}, {"context", "Ctx"}, {"projection", "Prj"}, {"dropout1", "D1"}, {"norm2", "LN2"},
    {"fc1", "FC1"}, {"activation", "Act"}, {"fc2", "FC2"}, {"dropout2", "D2"}, {"final_norm", "LNf"},
    {"head", "Head"}, {"loss", "Loss"},
}};

constexpr std::array<Op, 1> kEmbedding = {Op::Embedding};
constexpr std::array<Op, 8> kAttention = {Op::Norm1, Op::Qkv, Op::Score, Op::Softmax,
                                          Op::AttentionDropout, Op::Context, Op::Projection, Op::Dropout1};
constexpr std::array<Op, 5> kMlp = {Op::Norm2, Op::Fc1, Op::Activation, Op::Fc2, Op::Dropout2};
constexpr std::array<Op, 3> kHead = {Op::FinalNorm, Op::Head, Op::Loss};

}  // namespace

std::string_view name(Op op) { return kWords[static_cast<std::size_t>(op)].name; }
std::string_view label(Op op) { return kWords[static_cast<std::size_t>(op)].label; }

std::optional<Op> opNamed(std::string_view name) {
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    if (kWords[i].name == name) return static_cast<Op>(i);
  }
  return std::nullopt;
}

std::span<const Op> opsOf(UnitKind kind) {
  switch (kind) {
    case UnitKind::Embedding: return kEmbedding;
    case UnitKind::Attention: return kAttention;
    case UnitKind::Mlp: return kMlp;
    case UnitKind::Head: return kHead;
  }
  assert(false);
  return {};
}

}  // namespace evenkeel
