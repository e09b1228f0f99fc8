// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <bitset>
#include <functional>
#include <vector>

#include "core/model/op.h"

namespace evenkeel {

/// What is alive between two ops of a unit. Only Residual crosses from one unit to the next.
enum class Slot {
  Residual,  // tokens_BS before the embedding, then x_BSH; the sum of the losses after the head
  Main,      // what the last op made
  Query,
  Key,
  Value,
  Gate,  // of a gated MLP
};
inline constexpr std::size_t kSlotCount = 6;
using SlotSet = std::bitset<kSlotCount>;

[[nodiscard]] inline SlotSet slots(std::initializer_list<Slot> list) {
  SlotSet set;
  for (const Slot slot : list) set.set(static_cast<std::size_t>(slot));
  return set;
}

/// Undefined where nothing is alive.
struct Slots {
  std::array<at::Tensor, kSlotCount> tensors;
  at::Tensor& operator[](Slot slot) { return tensors[static_cast<std::size_t>(slot)]; }
  /// The tensor of a slot, which is dead from then on.
  [[nodiscard]] at::Tensor take(Slot slot) { return std::exchange((*this)[slot], at::Tensor()); }
};

/// What the ops of a stage need to know of the samples that they compute, besides the tensors.
struct Batch {
  at::Tensor targets_BS;         // int64; the head's only
  std::int64_t step = 0;         // 0-based
  bool trains = true;            // else: no dropout
  std::int64_t firstSample = 0;  // of the global batch; the others follow
};

/// An op on the weights of one rank. It reads and writes these slots only; a slot that it leaves undefined is dead.
struct OpStep {
  Op op = Op::Embedding;
  SlotSet reads, writes;
  std::function<void(Slots& slots, const Batch& batch)> run;
};

}  // namespace evenkeel
