// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace evenkeel {

/// The smallest thing that is profiled and recomputed, in the order of the forward pass.
enum class Op {
  Embedding,
  Norm1, Qkv, Score, Softmax, AttentionDropout, Context, Projection, Dropout1,  // attention block of a layer
  Norm2, Fc1, Activation, Fc2, Dropout2,                                        // MLP block of a layer
  FinalNorm, Head, Loss,
};
inline constexpr int kOpCount = 17;

/// "qkv": the word of files.
[[nodiscard]] std::string_view name(Op op);
/// "Qkv": the short label for display (paper, Table 3).
[[nodiscard]] std::string_view label(Op op);
[[nodiscard]] std::optional<Op> opNamed(std::string_view name);

/// The smallest thing that a stage boundary may cut. Between two units exactly one residual tensor crosses.
enum class UnitKind { Embedding, Attention, Mlp, Head };

/// The ops of a unit, in forward order.
[[nodiscard]] std::span<const Op> opsOf(UnitKind kind);

}  // namespace evenkeel
