// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "runtime/nn/dropout.h"
#include "runtime/nn/parameters.h"
#include "runtime/nn/recompute.h"
#include "runtime/nn/tensor_parallel.h"

namespace evenkeel {

/// The ops of one unit on the weights of one rank, computed as `precision` can be on this device. `group` outlives them.
[[nodiscard]] std::vector<OpStep> stepsOfUnit(const Model& model, int unit, const Parameters& parameters,
                                              const TensorParallel& group, const Dropout& dropout, Precision precision);

/// The units of one stage of a model, on the weights of one rank.
class StageModel {
 public:
  /// `parameters` must hold the rank's shard of the tensors of all these units, in `precision`; they and `group` outlive this.
  StageModel(const Model& model, const Stage& stage, const Parameters& parameters, const TensorParallel& group,
             const Dropout& dropout = {}, Precision precision = Precision::Fp32);

  /// `input`: tokens_BS (int64) if the stage begins with the embedding, else x_BSH. Returns x_BSH, or the sum of the token losses
  /// (one double) if the stage ends with the head. Throws CommFailure, as does the backward of what it returns.
  [[nodiscard]] at::Tensor forward(const at::Tensor& input, const Batch& batch) const;

  /// As forward(); its backward calls `onUnitDone` with each unit but the stage's first, last one first, once the gradients of
  /// all weights of it and of the units behind it are added.
  using UnitDone = std::function<void(int unit)>;
  [[nodiscard]] at::Tensor forward(const at::Tensor& input, const Batch& batch, const UnitDone& onUnitDone) const;

 private:
  int firstUnit_;
  std::vector<std::vector<Segment>> units_;
};

}  // namespace evenkeel
