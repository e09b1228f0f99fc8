// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/train/pipeline_runner.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cassert>
#include <limits>
#include <utility>

namespace evenkeel {
namespace {

// Messages of a pair of stages keep their order per tag; one tag a direction is enough.
constexpr int kActivationTag = 1, kGradientTag = 2;

}  // namespace

PipelineRunner::PipelineRunner(StageTask task, const StageModel& model, const ByteSamples& samples, Comm& comm,
                               ComputeClock& clock)
    : task_(std::move(task)),
      model_(model),
      samples_(samples),
      comm_(comm),
      clock_(clock),
      microBatches_(static_cast<int>(pipeline().microBatchCount())),
      schedule_(oneForwardOneBackward({.stage = static_cast<int>(task_.stage),
                                       .stages = static_cast<int>(pipeline().stages.size()),
                                       .microBatches = microBatches_})) {}

Result<PipelineRunner::Outcome> PipelineRunner::run(std::int64_t step) {
  step_ = step;
  outcome_ = {};
  if (!isFirst()) postReceive(nextActivation_, 0, *task_.previousRank, kActivationTag);
  if (!isLast()) postReceive(nextGradient_, 0, *task_.nextRank, kGradientTag);
  for (const Instruction& instruction : schedule_) {
    if (auto done = execute(instruction); !done) return done.error();
  }
  for (auto* const sent : {&sentActivations_, &sentGradients_}) {
    if (auto done = finishSends(*sent, std::numeric_limits<int>::max()); !done) return done.error();
  }
  assert(inFlight_.empty() && gradientsToSend_.empty());
  return outcome_;
}

Result<void> PipelineRunner::execute(Instruction instruction) {
  const int m = instruction.microBatch;
  switch (instruction.action) {
    case Action::ReceiveActivation: {
      auto received = receive(nextActivation_, *task_.previousRank, kActivationTag);
      if (!received) return received.error();
      activation_ = *std::move(received);
      // The previous stage has fill(stage - 1) + m forwards behind it, so that many backwards less its fill took our gradients.
      const int fill = static_cast<int>(pipeline().stages.size() - task_.stage);
      return finishSends(sentGradients_, m - fill - 1);
    }
    case Action::Forward: return forward(m);
    case Action::SendActivation:
      send(sentActivations_, inFlight_.at(m).output.detach(), m, *task_.nextRank, kActivationTag);
      return {};
    case Action::ReceiveGradient: {
      auto received = receive(nextGradient_, *task_.nextRank, kGradientTag);
      if (!received) return received.error();
      gradient_ = *std::move(received);
      return finishSends(sentActivations_, m);  // the next stage has used what it sends the gradient of
    }
    case Action::Backward: backward(m); return {};
    case Action::SendGradient: {
      auto gradient = gradientsToSend_.extract(m);
      send(sentGradients_, std::move(gradient.mapped()), m, *task_.previousRank, kGradientTag);
      return {};
    }
  }
  assert(false);
  return {};
}

Result<void> PipelineRunner::forward(int microBatch) {
  Windows windows;
  if (isFirst() || isLast()) {
    auto read = readWindows(microBatch);
    if (!read) return read.error();
    windows = *std::move(read);
  }
  clock_.run([&] {
    InFlight& own = inFlight_[microBatch];
    own.input = isFirst() ? windows.inputs_BS : std::exchange(activation_, {}).requires_grad_();
    own.output = model_.forward(own.input, {.targets_BS = windows.targets_BS, .step = step_});
    if (isLast()) outcome_.lossSum += own.output.item<double>();
  });
  return {};
}

void PipelineRunner::backward(int microBatch) {
  clock_.run([&] {
    const InFlight own = std::move(inFlight_.extract(microBatch).mapped());
    if (isLast()) {
      const auto tokens =
          static_cast<double>(task_.plan.training.globalBatch) * static_cast<double>(task_.plan.training.sequenceLength);
      own.output.backward(at::full({}, 1.0 / tokens, at::kDouble));
    } else {
      own.output.backward(std::exchange(gradient_, {}));
    }
    if (!isFirst()) gradientsToSend_[microBatch] = own.input.grad().contiguous();
  });
}

Result<PipelineRunner::Windows> PipelineRunner::readWindows(int microBatch) const {
  const SampleRange range = samplesOfMicroBatch(task_.plan, task_.pipeline, microBatch);
  const std::int64_t sequence = task_.plan.training.sequenceLength;
  Windows windows{at::empty({range.count, sequence}, at::kLong), at::empty({range.count, sequence}, at::kLong)};
  auto* input = windows.inputs_BS.data_ptr<std::int64_t>();
  auto* target = windows.targets_BS.data_ptr<std::int64_t>();
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(sequence) + 1);
  for (int i = 0; i < range.count; ++i) {
    if (auto read = samples_.read(step_, range.first + i, bytes); !read) return read.error();
    input = std::copy(bytes.begin(), bytes.end() - 1, input);
    target = std::copy(bytes.begin() + 1, bytes.end(), target);
  }
  return windows;
}

void PipelineRunner::postReceive(std::optional<Message>& slot, int microBatch, int peer, int tag) {
  at::Tensor tensor_BSH =
      at::empty({pipeline().samplesOf(microBatch), task_.plan.training.sequenceLength, task_.plan.model.hidden}, at::kFloat);
  auto transfer = comm_.receive(tensor_BSH, peer, tag);
  slot = Message{microBatch, std::move(tensor_BSH), std::move(transfer)};
}

Result<at::Tensor> PipelineRunner::receive(std::optional<Message>& slot, int peer, int tag) {
  Message message = *std::exchange(slot, std::nullopt);
  if (auto done = await(*message.transfer); !done) return done.error();
  if (message.microBatch + 1 < microBatches_) postReceive(slot, message.microBatch + 1, peer, tag);
  return std::move(message.tensor_BSH);
}

void PipelineRunner::send(std::deque<Message>& sent, at::Tensor tensor, int microBatch, int peer, int tag) {
  auto transfer = comm_.send(tensor, peer, tag);
  sent.push_back({microBatch, std::move(tensor), std::move(transfer)});
}

Result<void> PipelineRunner::finishSends(std::deque<Message>& sent, int upTo) {
  while (!sent.empty() && sent.front().microBatch <= upTo) {
    if (auto done = await(*sent.front().transfer); !done) return done;
    sent.pop_front();
  }
  return {};
}

Result<void> PipelineRunner::await(Transfer& transfer) {
  const auto start = SteadyClock::now();
  auto done = transfer.wait();
  outcome_.peerWait += secondsSince(start);
  return done;
}

}  // namespace evenkeel
