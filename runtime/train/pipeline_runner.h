// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "core/plan/block_map.h"
#include "runtime/comm/comm.h"
#include "runtime/data/samples.h"
#include "runtime/device/compute_clock.h"
#include "runtime/nn/stage_model.h"
#include "runtime/schedule/regroup.h"
#include "runtime/schedule/schedule.h"
#include "runtime/train/step_trace.h"

namespace evenkeel {

/// Told of the backwards of a rank as they go.
class BackwardObserver {
 public:
  virtual ~BackwardObserver() = default;
  /// Whether onUnitDone() is to be called in the backward of this micro-batch.
  [[nodiscard]] virtual bool watches(int microBatch) const = 0;
  // These may throw CommFailure.
  /// Before the backward of every micro-batch and before its gradient is waited for, also of one of which this replica has no sample.
  virtual void onBackward(int microBatch) = 0;
  /// For each unit of the stage, last one first: the gradients of all weights of it and of the units behind it are added.
  virtual void onUnitDone(int unit) = 0;
};

/// Executes the forwards and backwards of one rank of one stage of one pipeline, iteration by iteration, in the order of its
/// schedule. Gradients of (sum of token losses / tokens of the global batch) are added to those of the parameters.
class PipelineRunner {
 public:
  /// Everything that is passed by reference outlives this.
  PipelineRunner(const Plan& plan, RankPlace place, const StageModel& model, const TokenSamples& samples, Comm& comm,
                 ComputeClock& clock, StepTrace& trace, at::Device computes = at::kCPU);

  /// What activations and gradients of this rank take.
  [[nodiscard]] std::vector<Line> lines() const;

  struct Outcome {
    double lossSum = 0;  // of this replica's tokens, told by its first shard; 0 where the stage has no head
    Seconds peerWait;    // for tensors of the neighbours, and for them to take ours
  };
  /// One iteration; `step` is 0-based. Returns when all of its messages are delivered. Gradients are those of the loss
  /// times `lossScale`.
  [[nodiscard]] Result<Outcome> run(std::int64_t step, double lossScale, BackwardObserver& observer);
  /// Forwards alone, without dropout, of global batch `batch` of other data: the sum of the losses of this replica's tokens, told
  /// by its first shard; 0 where the stage has no head.
  [[nodiscard]] Result<double> evaluate(std::int64_t batch, const TokenSamples& samples);

 private:
  struct InFlight {
    at::Tensor input, output;
  };
  /// The messages that one micro-batch needs in one direction, to or from all ranks of a neighbouring stage.
  struct Exchange {
    int microBatch = 0;
    at::Tensor tensor_BSH;
    std::vector<std::unique_ptr<Transfer>> transfers;
    int peer = -1;  // the rank of the only one of them
  };
  struct Windows {
    at::Tensor inputs_BS, targets_BS;  // int64
  };

  [[nodiscard]] Result<void> execute(Instruction instruction);
  [[nodiscard]] Result<void> forward(int microBatch);
  [[nodiscard]] Result<void> beginBackward(int microBatch);
  [[nodiscard]] Result<void> backward(int microBatch);
  /// What fails in the collectives of `work` becomes an Error.
  template <class Work>
  [[nodiscard]] static Result<void> guarded(const Work& work);
  /// The same as the device's computation.
  template <class Work>
  [[nodiscard]] Result<void> compute(Span::Kind kind, int microBatch, const Work& work);
  [[nodiscard]] Result<Windows> readWindows(const TokenSamples& samples, std::int64_t step, SampleRange range) const;
  void postReceive(std::optional<Exchange>& slot, int microBatch, const StageSide& from, int tag);
  [[nodiscard]] Result<at::Tensor> receive(std::optional<Exchange>& slot, const StageSide& from, int tag);
  void send(std::deque<Exchange>& sent, at::Tensor tensor_BSH, int microBatch, const StageSide& to, int tag);
  [[nodiscard]] Result<void> finishSends(std::deque<Exchange>& sent, int upTo);
  [[nodiscard]] Result<void> await(Exchange& exchange);

  [[nodiscard]] const Pipeline& pipeline() const { return plan_.pipelines[place_.pipeline]; }
  [[nodiscard]] SampleRange samplesOf(int microBatch) const { return samplesOfReplica(plan_, place_, microBatch); }
  [[nodiscard]] StageSide sideOf(std::size_t stage) const;
  [[nodiscard]] bool isFirst() const { return !previous_; }
  [[nodiscard]] bool isLast() const { return !next_; }

  const Plan& plan_;
  RankPlace place_;
  const StageModel& model_;
  const TokenSamples& samples_;
  Comm& comm_;
  ComputeClock& clock_;
  StepTrace& trace_;
  at::Device computes_;  // where its tensors are
  int microBatches_;
  std::vector<Instruction> schedule_;
  StageSide own_;
  std::optional<StageSide> previous_, next_;

  std::int64_t step_ = 0;
  double lossScale_ = 1;
  BackwardObserver* observer_ = nullptr;  // of the iteration that runs
  Outcome outcome_;
  std::map<int, InFlight> inFlight_;  // without micro-batches of which this replica has no sample
  std::map<int, at::Tensor> gradientsToSend_;
  std::optional<Exchange> nextActivation_, nextGradient_;  // posted one ahead, so that they travel while we compute
  at::Tensor activation_, gradient_;                       // received, not used yet
  std::deque<Exchange> sentActivations_, sentGradients_;   // oldest first
};

}  // namespace evenkeel
