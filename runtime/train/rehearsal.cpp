// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/train/rehearsal.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "core/plan/block_map.h"
#include "runtime/data/samples.h"
#include "runtime/device/compute_clock.h"
#include "runtime/job/process.h"
#include "runtime/schedule/regroup.h"
#include "runtime/schedule/schedule.h"
#include "runtime/train/step_trace.h"

namespace evenkeel {
namespace {

constexpr int kActivationTag = 1, kGradientTag = 2;

Seconds now() { return {std::chrono::duration<double>(SteadyClock::now().time_since_epoch()).count()}; }

void sleepUntil(Seconds time) {
  std::this_thread::sleep_until(SteadyClock::time_point(std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(time.value))));
}

class Rehearsal {
 public:
  Rehearsal(const Job& job, Comm& comm, EventWriter& events)
      : job_(job),
        comm_(comm),
        events_(events),
        place_(rankPlaces(job.plan)[static_cast<std::size_t>(comm.rank())]),
        trace_(job.run.traceSteps),
        scale_(job.run.rehearsal->timeScale),
        schedule_(oneForwardOneBackward({.stage = static_cast<int>(place_.stage),
                                         .stages = static_cast<int>(pipeline().stages.size()),
                                         .microBatches = static_cast<int>(pipeline().microBatchCount())})),
        own_(sideOf(place_.stage)),
        everyone_(static_cast<std::size_t>(comm.worldSize())) {
    if (place_.stage > 0) previous_.emplace(sideOf(place_.stage - 1));
    if (place_.stage + 1 < pipeline().stages.size()) next_.emplace(sideOf(place_.stage + 1));
    std::iota(everyone_.begin(), everyone_.end(), 0);
  }

  Result<void> step(std::int64_t step) {
    // All begin together, as they do in training, where each waits for everybody's loss.
    if (auto met = meet(); !met) return met;
    const Seconds start = now();
    trace_.begin(step + 1);
    slept_ = waited_ = {};
    postReceives();
    for (const Instruction& instruction : schedule_) {
      if (auto done = execute(instruction); !done) return done;
    }
    for (const auto& transfer : sent_) {
      if (auto done = transfer->wait(); !done) return done;
    }
    sent_.clear();
    const auto waitStart = SteadyClock::now();
    if (auto met = meet(); !met) return met;
    trace_.meet();
    trace_.add(Span::Kind::Wait, waitStart);
    const Seconds pipelines = now() - start, compute = slept_;
    const PlanPrediction& predicted = *job_.plan.predicted;
    const Seconds rest = scale_ * (predicted.iteration - predicted.pipeline), optimizer = std::min(rest, scale_ * predicted.optimizer);
    const auto syncStart = SteadyClock::now();
    sleepUntil(start + pipelines + rest - optimizer);
    trace_.add(Span::Kind::Sync, syncStart);
    const auto updateStart = SteadyClock::now();
    sleepUntil(start + pipelines + rest);
    trace_.add(Span::Kind::Optimizer, updateStart);
    const Seconds iteration = now() - start;
    const std::int64_t tokens = job_.plan.training.globalBatch * job_.plan.training.sequenceLength;
    events_.write("step", {{"step", step + 1},
                           {"loss", 0},
                           {"tokens", tokens},
                           {"iteration_ms", milliseconds(iteration)},
                           {"compute_ms", milliseconds(compute)},
                           {"p2p_ms", milliseconds(waited_)},
                           {"bubble_ms", milliseconds(std::max(Seconds{}, pipelines - compute - waited_))},
                           {"sync_ms", milliseconds(rest - optimizer)},
                           {"optimizer_ms", milliseconds(optimizer)},
                           {"peak_bytes", peakResident().value},
                           {"grad_norm", 0},
                           {"learning_rate", job_.run.learningRate.at(step, job_.run.steps)}});
    trace_.write(events_);
    return {};
  }

 private:
  /// A message of each peer that has samples of the micro-batch: when it left.
  struct Arrival {
    std::vector<at::Tensor> departures;  // one double each
    std::vector<std::unique_ptr<Transfer>> transfers;
    int peer = -1;  // the rank of the only one of them
  };

  const Pipeline& pipeline() const { return job_.plan.pipelines[place_.pipeline]; }
  const StagePrediction& predictionOf(std::size_t stage) const { return *pipeline().stages[stage].predicted; }
  StageSide sideOf(std::size_t stage) const {
    const Stage& side = pipeline().stages[stage];
    return {.stage = side, .ranks = ranksOf(job_.plan, side), .microBatch = pipeline().microBatch};
  }
  bool hasSamples(int microBatch) const { return samplesOfReplica(job_.plan, place_, microBatch).count > 0; }
  /// Of a time that is predicted for a full micro-batch.
  Seconds scaled(Seconds full, int microBatch) const {
    return scale_ * pipeline().samplesOf(microBatch) / pipeline().microBatch * full;
  }

  Result<void> meet() { return comm_.allReduceSum(at::full({1}, 0.0, at::kDouble), everyone_); }

  void postReceives() {
    const auto post = [&](std::vector<Arrival>& arrivals, const std::optional<StageSide>& from, int tag) {
      arrivals.clear();
      if (!from) return;
      arrivals.resize(static_cast<std::size_t>(pipeline().microBatchCount()));
      for (std::size_t m = 0; m < arrivals.size(); ++m) {
        for (const Portion& portion : portionsToReceive(*from, own_, pipeline().samplesOf(static_cast<int>(m)), place_.replica, place_.shard)) {
          arrivals[m].departures.push_back(at::empty({1}, at::kDouble));
          arrivals[m].transfers.push_back(comm_.receive(arrivals[m].departures.back(), portion.peer, tag));
          arrivals[m].peer = arrivals[m].transfers.size() == 1 ? portion.peer : -1;
        }
      }
    };
    post(activations_, previous_, kActivationTag);
    post(gradients_, next_, kGradientTag);
  }

  Result<void> execute(Instruction instruction) {
    const int m = instruction.microBatch;
    switch (instruction.action) {
      case Action::ReceiveActivation: return receive(activations_[static_cast<std::size_t>(m)], m, scaled(predictionOf(place_.stage - 1).send, m));
      case Action::ReceiveGradient: return receive(gradients_[static_cast<std::size_t>(m)], m, scaled(predictionOf(place_.stage).send, m));
      case Action::Forward: compute(Span::Kind::Forward, m, predictionOf(place_.stage).forward); return {};
      case Action::Backward: compute(Span::Kind::Backward, m, predictionOf(place_.stage).backward); return {};
      case Action::SendActivation: send(*next_, m, kActivationTag); return {};
      case Action::SendGradient: send(*previous_, m, kGradientTag); return {};
    }
    return {};
  }

  void compute(Span::Kind kind, int microBatch, Seconds full) {
    if (!hasSamples(microBatch)) return;
    const Seconds start = now();
    const auto begin = SteadyClock::now();
    sleepUntil(start + scaled(full, microBatch));
    slept_ += now() - start;
    trace_.add(kind, begin, microBatch);
  }

  Result<void> receive(Arrival& arrival, int microBatch, Seconds flight) {
    const Seconds start = now();
    const auto begin = SteadyClock::now();
    Seconds due = start;
    for (std::size_t i = 0; i < arrival.transfers.size(); ++i) {
      if (auto done = arrival.transfers[i]->wait(); !done) return done;
      due = std::max(due, Seconds{arrival.departures[i].item<double>()} + flight);
    }
    sleepUntil(due);
    waited_ += now() - start;
    trace_.add(Span::Kind::Wait, begin, microBatch, arrival.peer);
    return {};
  }

  void send(const StageSide& to, int microBatch, int tag) {
    for (const Portion& portion : portionsToSend(own_, to, pipeline().samplesOf(microBatch), place_.replica, place_.shard))
      sent_.push_back(comm_.send(at::full({1}, now().value, at::kDouble), portion.peer, tag));
  }

  const Job& job_;
  Comm& comm_;
  EventWriter& events_;
  RankPlace place_;
  StepTrace trace_;
  double scale_;
  std::vector<Instruction> schedule_;
  StageSide own_;
  std::optional<StageSide> previous_, next_;
  std::vector<int> everyone_;
  std::vector<Arrival> activations_, gradients_;  // of this step, by micro-batch
  std::vector<std::unique_ptr<Transfer>> sent_;
  Seconds slept_, waited_;
};

}  // namespace

Result<void> rehearse(const Job& job, Comm& comm, EventWriter& events, std::atomic<std::int64_t>& lastStep) {
  Rehearsal rehearsal(job, comm, events);
  while (lastStep < job.run.steps) {
    if (auto done = rehearsal.step(lastStep.load()); !done) return done;
    ++lastStep;
  }
  return {};
}

}  // namespace evenkeel
