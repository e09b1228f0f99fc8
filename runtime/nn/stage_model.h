// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <vector>

#include "core/plan/plan.h"
#include "runtime/nn/parameters.h"

namespace evenkeel {

/// The units [first, last) of a model, on the weights of one rank.
class StageModel {
 public:
  /// `parameters` must hold the tensors of all these units and outlive this.
  StageModel(const Model& model, UnitRange units, const Parameters& parameters);

  /// `input`: tokens_BS (int64) if the stage begins with the embedding, else x_BSH. `targets_BS` (int64) is used by the head
  /// only. Returns x_BSH, or the sum of the token losses (one double) if the stage ends with the head.
  [[nodiscard]] at::Tensor forward(const at::Tensor& input, const at::Tensor& targets_BS) const;

 private:
  using Unit = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& targets_BS)>;
  std::vector<Unit> units_;
};

}  // namespace evenkeel
