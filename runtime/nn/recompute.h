// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "runtime/nn/op_step.h"

namespace evenkeel {

/// Adjacent ops of a unit that are computed together: either as they are, or dropped in forward and computed again in backward.
struct Segment {
  std::vector<OpStep> steps;
  bool isRecomputed = false;
  SlotSet inputs, outputs;  // what its ops read from outside, what they write
};

/// The ops of a unit as maximal runs of recomputed and of other ops. One segment a run: of a recomputed one only the inputs are
/// kept, as core/cost/unit_cost.h counts.
[[nodiscard]] std::vector<Segment> segmentsOf(std::vector<OpStep> steps, const std::bitset<kOpCount>& recomputed);

/// Runs the segment. While gradients are recorded, a recomputed one leaves nothing behind but its inputs: backward runs its ops
/// once more (collectives included) and then through them. The segment must outlive the backward.
void run(const Segment& segment, Slots& slots, const Batch& batch);

}  // namespace evenkeel
