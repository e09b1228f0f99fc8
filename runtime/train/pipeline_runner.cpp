// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/train/pipeline_runner.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cassert>
#include <limits>
#include <set>
#include <utility>

namespace evenkeel {
namespace {

// Messages of a pair of ranks keep their order per tag; one tag a direction is enough.
constexpr int kActivationTag = 1, kGradientTag = 2;

}  // namespace

PipelineRunner::PipelineRunner(const Plan& plan, RankPlace place, const StageModel& model, const TokenSamples& samples, Comm& comm,
                               ComputeClock& clock, StepTrace& trace, at::Device computes)
    : plan_(plan),
      place_(place),
      model_(model),
      samples_(samples),
      comm_(comm),
      clock_(clock),
      trace_(trace),
      computes_(computes),
      microBatches_(static_cast<int>(pipeline().microBatchCount())),
      schedule_(oneForwardOneBackward({.stage = static_cast<int>(place_.stage),
                                       .stages = static_cast<int>(pipeline().stages.size()),
                                       .microBatches = microBatches_})),
      own_(sideOf(place_.stage)) {
  if (place_.stage > 0) previous_.emplace(sideOf(place_.stage - 1));
  if (place_.stage + 1 < pipeline().stages.size()) next_.emplace(sideOf(place_.stage + 1));
}

StageSide PipelineRunner::sideOf(std::size_t stage) const {
  const Stage& side = pipeline().stages[stage];
  return {.stage = side, .ranks = ranksOf(plan_, side), .microBatch = pipeline().microBatch};
}

std::vector<Line> PipelineRunner::lines() const {
  std::vector<Line> lines;
  const int self = comm_.rank();
  std::set<int> sizes;
  for (int m = 0; m < microBatches_; ++m) sizes.insert(pipeline().samplesOf(m));
  const auto to = [&](const std::vector<Portion>& portions, int tag) {
    for (const Portion& portion : portions) lines.push_back({self, portion.peer, tag});
  };
  const auto from = [&](const std::vector<Portion>& portions, int tag) {
    for (const Portion& portion : portions) lines.push_back({portion.peer, self, tag});
  };
  for (const int samples : sizes) {
    if (previous_) {
      from(portionsToReceive(*previous_, own_, samples, place_.replica, place_.shard), kActivationTag);
      to(portionsToSend(own_, *previous_, samples, place_.replica, place_.shard), kGradientTag);
    }
    if (next_) {
      to(portionsToSend(own_, *next_, samples, place_.replica, place_.shard), kActivationTag);
      from(portionsToReceive(*next_, own_, samples, place_.replica, place_.shard), kGradientTag);
    }
  }
  return lines;
}

Result<PipelineRunner::Outcome> PipelineRunner::run(std::int64_t step, double lossScale, BackwardObserver& observer) {
  step_ = step;
  lossScale_ = lossScale;
  observer_ = &observer;
  outcome_ = {};
  if (!isFirst()) postReceive(nextActivation_, 0, *previous_, kActivationTag);
  if (!isLast()) postReceive(nextGradient_, 0, *next_, kGradientTag);
  for (const Instruction& instruction : schedule_) {
    if (auto done = execute(instruction); !done) return done.error();
  }
  for (auto* const sent : {&sentActivations_, &sentGradients_}) {
    if (auto done = finishSends(*sent, std::numeric_limits<int>::max()); !done) return done.error();
  }
  assert(inFlight_.empty() && gradientsToSend_.empty());
  return outcome_;
}

Result<double> PipelineRunner::evaluate(std::int64_t batch, const TokenSamples& samples) {
  const at::AutoGradMode notRecording(false);
  double lossSum = 0;
  if (!isFirst()) postReceive(nextActivation_, 0, *previous_, kActivationTag);
  for (int m = 0; m < microBatches_; ++m) {
    at::Tensor input;
    if (!isFirst()) {
      auto received = receive(nextActivation_, *previous_, kActivationTag);
      if (!received) return received.error();
      input = *std::move(received);
    }
    const SampleRange range = samplesOf(m);
    if (range.count == 0) continue;
    Windows windows;
    if (isFirst() || isLast()) {
      auto read = readWindows(samples, batch, range);
      if (!read) return read.error();
      windows = *std::move(read);
    }
    at::Tensor output;
    auto computed = compute(Span::Kind::Forward, m, [&] {
      output = model_.forward(isFirst() ? windows.inputs_BS : input,
                              {.targets_BS = windows.targets_BS, .step = batch, .trains = false, .firstSample = range.first});
      if (isLast() && place_.shard == 0) lossSum += output.item<double>();
    });
    if (!computed) return computed.error();
    if (isLast()) continue;
    send(sentActivations_, std::move(output), m, *next_, kActivationTag);
    if (auto done = finishSends(sentActivations_, m - 2); !done) return done.error();  // some may wait, not all of them
  }
  if (auto done = finishSends(sentActivations_, std::numeric_limits<int>::max()); !done) return done.error();
  return lossSum;
}

Result<void> PipelineRunner::execute(Instruction instruction) {
  const int m = instruction.microBatch;
  switch (instruction.action) {
    case Action::ReceiveActivation: {
      auto received = receive(nextActivation_, *previous_, kActivationTag);
      if (!received) return received.error();
      activation_ = *std::move(received);
      // The previous stage has fill(stage - 1) + m forwards behind it, so that many backwards less its fill took our gradients.
      const int fill = static_cast<int>(pipeline().stages.size() - place_.stage);
      return finishSends(sentGradients_, m - fill - 1);
    }
    case Action::Forward: return forward(m);
    case Action::SendActivation:
      if (const auto own = inFlight_.find(m); own != inFlight_.end())
        send(sentActivations_, own->second.output.detach(), m, *next_, kActivationTag);
      return {};
    case Action::ReceiveGradient: {
      if (auto done = beginBackward(m); !done) return done;
      auto received = receive(nextGradient_, *next_, kGradientTag);
      if (!received) return received.error();
      gradient_ = *std::move(received);
      return finishSends(sentActivations_, m);  // the next stage has used what it sends the gradient of
    }
    case Action::Backward:
      if (isLast()) {
        if (auto done = beginBackward(m); !done) return done;
      }
      return backward(m);
    case Action::SendGradient: {
      auto gradient = gradientsToSend_.extract(m);
      if (!gradient.empty()) send(sentGradients_, std::move(gradient.mapped()), m, *previous_, kGradientTag);
      return {};
    }
  }
  assert(false);
  return {};
}

template <class Work>
Result<void> PipelineRunner::guarded(const Work& work) {
  try {
    work();
    return {};
  } catch (const CommFailure& failure) {
    return failure.error;
  }
}

template <class Work>
Result<void> PipelineRunner::compute(Span::Kind kind, int microBatch, const Work& work) {
  const auto start = SteadyClock::now();
  auto done = guarded([&] { clock_.run(work); });
  trace_.add(kind, start, microBatch);
  return done;
}

Result<void> PipelineRunner::forward(int microBatch) {
  const SampleRange range = samplesOf(microBatch);
  if (range.count == 0) return {};
  Windows windows;
  if (isFirst() || isLast()) {
    auto read = readWindows(samples_, step_, range);
    if (!read) return read.error();
    windows = *std::move(read);
  }
  return compute(Span::Kind::Forward, microBatch, [&] {
    InFlight& own = inFlight_[microBatch];
    own.input = isFirst() ? windows.inputs_BS : std::exchange(activation_, {}).requires_grad_();
    const Batch batch{.targets_BS = windows.targets_BS, .step = step_, .firstSample = range.first};
    own.output = observer_->watches(microBatch) ? model_.forward(own.input, batch, [this](int unit) { observer_->onUnitDone(unit); })
                                                : model_.forward(own.input, batch);
    if (isLast() && place_.shard == 0) outcome_.lossSum += own.output.item<double>();
  });
}

Result<void> PipelineRunner::beginBackward(int microBatch) {
  return guarded([&] { observer_->onBackward(microBatch); });
}

Result<void> PipelineRunner::backward(int microBatch) {
  auto known = inFlight_.extract(microBatch);
  if (known.empty()) return {};
  return compute(Span::Kind::Backward, microBatch, [&] {
    const InFlight own = std::move(known.mapped());
    if (isLast()) {
      const auto tokens = static_cast<double>(plan_.training.globalBatch) * static_cast<double>(plan_.training.sequenceLength);
      own.output.backward(at::full({}, lossScale_ / tokens, own.output.options().requires_grad(false)));
    } else {
      own.output.backward(std::exchange(gradient_, {}));
    }
    if (observer_->watches(microBatch)) observer_->onUnitDone(pipeline().stages[place_.stage].units.first);
    if (!isFirst()) gradientsToSend_[microBatch] = own.input.grad().contiguous();
  });
}

Result<PipelineRunner::Windows> PipelineRunner::readWindows(const TokenSamples& samples, std::int64_t step,
                                                            SampleRange range) const {
  const std::int64_t sequence = plan_.training.sequenceLength;
  Windows windows{at::empty({range.count, sequence}, at::kLong), at::empty({range.count, sequence}, at::kLong)};
  auto* input = windows.inputs_BS.data_ptr<std::int64_t>();
  auto* target = windows.targets_BS.data_ptr<std::int64_t>();
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(sequence) + 1);
  for (int i = 0; i < range.count; ++i) {
    if (auto read = samples.read(step, range.first + i, tokens); !read) return read.error();
    input = std::copy(tokens.begin(), tokens.end() - 1, input);
    target = std::copy(tokens.begin() + 1, tokens.end(), target);
  }
  if (isFirst()) windows.inputs_BS = windows.inputs_BS.to(computes_);
  if (isLast()) windows.targets_BS = windows.targets_BS.to(computes_);
  return windows;
}

void PipelineRunner::postReceive(std::optional<Exchange>& slot, int microBatch, const StageSide& from, int tag) {
  slot.emplace();
  slot->microBatch = microBatch;
  slot->tensor_BSH = at::empty({samplesOf(microBatch).count, plan_.training.sequenceLength, plan_.model.hidden},
                               at::TensorOptions(scalarTypeOf(plan_.training.precision)).device(computes_));
  for (const Portion& portion : portionsToReceive(from, own_, pipeline().samplesOf(microBatch), place_.replica, place_.shard)) {
    slot->transfers.push_back(comm_.receive(slot->tensor_BSH.narrow(0, portion.first, portion.count), portion.peer, tag));
    slot->peer = slot->transfers.size() == 1 ? portion.peer : -1;
  }
}

Result<at::Tensor> PipelineRunner::receive(std::optional<Exchange>& slot, const StageSide& from, int tag) {
  Exchange exchange = *std::exchange(slot, std::nullopt);
  if (auto done = await(exchange); !done) return done.error();
  if (exchange.microBatch + 1 < microBatches_) postReceive(slot, exchange.microBatch + 1, from, tag);
  return std::move(exchange.tensor_BSH);
}

void PipelineRunner::send(std::deque<Exchange>& sent, at::Tensor tensor_BSH, int microBatch, const StageSide& to, int tag) {
  Exchange exchange{.microBatch = microBatch, .tensor_BSH = std::move(tensor_BSH), .transfers = {}};
  for (const Portion& portion : portionsToSend(own_, to, pipeline().samplesOf(microBatch), place_.replica, place_.shard)) {
    exchange.transfers.push_back(comm_.send(exchange.tensor_BSH.narrow(0, portion.first, portion.count), portion.peer, tag));
    exchange.peer = exchange.transfers.size() == 1 ? portion.peer : -1;
  }
  sent.push_back(std::move(exchange));
}

Result<void> PipelineRunner::finishSends(std::deque<Exchange>& sent, int upTo) {
  while (!sent.empty() && sent.front().microBatch <= upTo) {
    if (auto done = await(sent.front()); !done) return done;
    sent.pop_front();
  }
  return {};
}

Result<void> PipelineRunner::await(Exchange& exchange) {
  const auto start = SteadyClock::now();
  Result<void> done;
  for (const auto& transfer : exchange.transfers) {
    done = transfer->wait();
    if (!done) break;
  }
  outcome_.peerWait += secondsSince(start);
  trace_.add(Span::Kind::Wait, start, exchange.microBatch, exchange.peer);
  return done;
}

}  // namespace evenkeel
