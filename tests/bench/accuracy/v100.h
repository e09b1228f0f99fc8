// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace evenkeel::accuracy {

/// Mean absolute errors over whole layers, as fractions.
struct LayerErrors {
  int cells = 0;
  double forward = 0, backward = 0, forwardMost = 0, backwardMost = 0;
};

/// The analytic profile beside Aceso's V100 layers: tp 1 to 8, micro-batches 1 to 8, unfused-softmax cells left out.
struct V100Errors {
  LayerErrors fitted;                         // constants of the V100, sizes that they were fitted on
  LayerErrors heldOut;                        // the other two
  LayerErrors generic;                        // the one set for unknown devices, all sizes
  std::map<std::string, LayerErrors> bySize;  // constants of the V100
  std::map<int, LayerErrors> genericByTp;
};
[[nodiscard]] Result<V100Errors> v100Errors(const std::filesystem::path& data);

/// NCCL inside a node of V100s: mean absolute error of one collective and number of GPUs. The all-reduce is latency + bandwidth,
/// the others are tables of 8 points.
struct CollectiveError {
  std::string collective, type;
  int gpus = 0, rows = 0, slower = 0;
  double error = 0;
};
[[nodiscard]] Result<std::vector<CollectiveError>> collectiveErrors(const std::filesystem::path& data);

}  // namespace evenkeel::accuracy
