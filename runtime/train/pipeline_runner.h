// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "runtime/comm/comm.h"
#include "runtime/data/samples.h"
#include "runtime/device/compute_clock.h"
#include "runtime/nn/stage_model.h"
#include "runtime/schedule/schedule.h"

namespace evenkeel {

/// What one stage of one pipeline needs to know of the plan.
struct StageTask {
  const Plan& plan;
  std::size_t pipeline = 0, stage = 0;
  std::optional<int> previousRank, nextRank;  // none: the first, the last stage
};

/// Executes the forwards and backwards of one stage of one pipeline, iteration by iteration, in the order of its schedule.
/// Gradients of (sum of token losses / tokens of the global batch) are added to those of the parameters.
class PipelineRunner {
 public:
  /// Everything that is passed by reference outlives this.
  PipelineRunner(StageTask task, const StageModel& model, const ByteSamples& samples, Comm& comm, ComputeClock& clock);

  struct Outcome {
    double lossSum = 0;  // of this stage's tokens; 0 where the stage has no head
    Seconds peerWait;    // for tensors of the neighbours, and for them to take ours
  };
  /// One iteration; `step` is 0-based. Returns when all of its messages are delivered.
  [[nodiscard]] Result<Outcome> run(std::int64_t step);

 private:
  struct InFlight {
    at::Tensor input, output;
  };
  struct Message {
    int microBatch = 0;
    at::Tensor tensor_BSH;
    std::unique_ptr<Transfer> transfer;
  };
  struct Windows {
    at::Tensor inputs_BS, targets_BS;  // int64
  };

  [[nodiscard]] Result<void> execute(Instruction instruction);
  [[nodiscard]] Result<void> forward(int microBatch);
  void backward(int microBatch);
  [[nodiscard]] Result<Windows> readWindows(int microBatch) const;
  void postReceive(std::optional<Message>& slot, int microBatch, int peer, int tag);
  [[nodiscard]] Result<at::Tensor> receive(std::optional<Message>& slot, int peer, int tagKind);
  void send(std::deque<Message>& sent, at::Tensor tensor, int microBatch, int peer, int tag);
  [[nodiscard]] Result<void> finishSends(std::deque<Message>& sent, int upTo);
  [[nodiscard]] Result<void> await(Transfer& transfer);

  [[nodiscard]] const Pipeline& pipeline() const { return task_.plan.pipelines[task_.pipeline]; }
  [[nodiscard]] bool isFirst() const { return !task_.previousRank; }
  [[nodiscard]] bool isLast() const { return !task_.nextRank; }

  StageTask task_;
  const StageModel& model_;
  const ByteSamples& samples_;
  Comm& comm_;
  ComputeClock& clock_;
  int microBatches_;
  std::vector<Instruction> schedule_;

  std::int64_t step_ = 0;
  Outcome outcome_;
  std::map<int, InFlight> inFlight_;
  std::map<int, at::Tensor> gradientsToSend_;
  std::optional<Message> nextActivation_, nextGradient_;  // posted one ahead, so that they travel while we compute
  at::Tensor activation_, gradient_;                      // received, not used yet
  std::deque<Message> sentActivations_, sentGradients_;   // oldest first
};

}  // namespace evenkeel
