// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/cost/cost_model.h"

namespace evenkeel {

/// A plan that uses one more device, and how.
struct MoreUsed {
  std::string how;
  std::vector<Pipeline> pipelines;  // empty: none was found
};
/// The fastest of those that fit, else the first: the idle `device` as one more stage anywhere in a pipeline of each look, taking
/// part of a stage's units, or as a pipeline of its own with its part of the samples.
[[nodiscard]] MoreUsed bestUseOf(const CostModel& model, const std::vector<Pipeline>& pipelines, DeviceId device,
                                 std::stop_token stop);

}  // namespace evenkeel
