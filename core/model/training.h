// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/json_reader.h"
#include "core/base/precision.h"

namespace evenkeel {

enum class GradientSync { Block, Tensor, Device };
enum class AttentionKernel { Unfused, Fused };  // Fused: flash attention, no s^2 activations

/// The words of files: "block", "tensor", "device"; "unfused", "fused".
[[nodiscard]] std::span<const std::pair<std::string_view, GradientSync>> gradientSyncWords();
[[nodiscard]] std::span<const std::pair<std::string_view, AttentionKernel>> attentionWords();
[[nodiscard]] std::string_view name(GradientSync sync);
[[nodiscard]] std::string_view name(AttentionKernel kernel);

/// The part of the training's settings that a plan depends on.
struct Training {
  std::int64_t sequenceLength = 0;
  std::int64_t globalBatch = 0;   // samples (sequences) an iteration
  Precision precision = Precision::Bf16;
  int zeroStage = 1;              // 0, 1 or 2: what is sharded over the holders of a block (optimizer state, + gradients)
  GradientSync gradientSync = GradientSync::Block;
  AttentionKernel attention = AttentionKernel::Unfused;
  bool sequenceParallel = false;  // norms, dropouts and the residual stream are divided over the tp group too
  Json extra;
  bool operator==(const Training&) const = default;
};

inline constexpr std::int64_t kMaxGlobalBatch = 1 << 20;
inline constexpr std::int64_t kMaxSequence = 1 << 20;

[[nodiscard]] Training readTraining(JsonReader& reader);
[[nodiscard]] Json toJson(const Training& training);

}  // namespace evenkeel
