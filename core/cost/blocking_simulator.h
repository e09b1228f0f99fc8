// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/cost/simulator.h"

namespace evenkeel {

/// 1F1B where transfers stand in the stages' compute streams (times.transfers: Deferred or Paired). A transfer begins when both
/// ends have come to it and keeps both until it is done, unless it is buffered: then it begins when its sender comes to it, which
/// goes on. Deferred is the order of DeepSpeed's TrainSchedule: before a backward its gradient is received, then the activation
/// of the forward before it is sent; a gradient is sent before the next activation is received. Paired is that of Megatron-LM: a
/// stage sends and receives at once. O(stages x micro-batches).
[[nodiscard]] Simulation simulateBlocking(const PipelineTimes& times, std::vector<Span>* spans);

}  // namespace evenkeel
