// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

namespace evenkeel {

/// What a stage does next with one micro-batch. Sends are started and awaited at the end of the iteration only; receives wait.
enum class Action { ReceiveActivation, Forward, SendActivation, ReceiveGradient, Backward, SendGradient };

struct Instruction {
  Action action = Action::Forward;
  int microBatch = 0;
  bool operator==(const Instruction&) const = default;
};

/// Of `stages` stages, the one with index `stage`, in an iteration of `microBatches` micro-batches.
struct StagePosition {
  int stage = 0, stages = 1;
  int microBatches = 1;
};

/// One-forward-one-backward (PipeDream-Flush): min(stages - 1 - stage, M) forwards to fill the pipeline, then one forward and one
/// backward in turn, then the remaining backwards. At most min(stages - stage, M) micro-batches are in flight; forwards and
/// backwards each run in the order of the micro-batches, so that gradients are added up in the same order every time.
[[nodiscard]] std::vector<Instruction> oneForwardOneBackward(const StagePosition& position);

}  // namespace evenkeel
