// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/simulator.h"

#include <algorithm>
#include <cassert>

#include "core/cost/blocking_simulator.h"

namespace evenkeel {
namespace {

constexpr Seconds kNotYet{-1.0};

class Simulator {
 public:
  Simulator(const PipelineTimes& times, std::vector<Span>* spans)
      : times_(times), spans_(spans), stageCount_(times.full.size()), states_(stageCount_) {
    const auto slots = static_cast<std::size_t>(std::min(static_cast<std::int64_t>(stageCount_), times.microBatches));
    for (State& state : states_) {
      state.activationAt.assign(slots, kNotYet);
      state.gradientAt.assign(slots, kNotYet);
    }
    std::ranges::fill(states_.front().activationAt, Seconds{});
  }

  Simulation run() {
    // Each stage runs until it lacks an input; whoever delivers one wakes it. Stage order is fixed, so no clock is needed.
    std::vector<std::size_t> awake;
    for (std::size_t stage = stageCount_; stage-- > 0;) awake.push_back(stage);
    while (!awake.empty()) {
      const std::size_t stage = awake.back();
      awake.pop_back();
      if (!advance(stage)) continue;
      if (stage > 0) awake.push_back(stage - 1);
      if (stage + 1 < stageCount_) awake.push_back(stage + 1);
    }
    return summary();
  }

 private:
  struct State {
    // Of micro-batch m in slot m mod P: no more than P of them are between forward and backward. kNotYet: not delivered.
    std::vector<Seconds> activationAt, gradientAt;
    std::int64_t done = 0;  // ops of 2 M
    Seconds free, linkFree;
    StageActivity activity;
  };
  struct Step {
    bool forward;
    std::int64_t microBatch;
  };

  [[nodiscard]] Step stepOf(std::size_t stage, std::int64_t index) const {
    const std::int64_t count = times_.microBatches;
    const std::int64_t ahead = std::min(static_cast<std::int64_t>(stageCount_ - 1 - stage), count);
    if (index < ahead) return {true, index};
    if (index >= 2 * count - ahead) return {false, index - count};
    const std::int64_t pair = (index - ahead) / 2;
    return (index - ahead) % 2 == 0 ? Step{true, ahead + pair} : Step{false, pair};
  }

  [[nodiscard]] std::size_t slotOf(std::int64_t microBatch) const {
    return static_cast<std::size_t>(microBatch) % states_.front().activationAt.size();
  }

  /// Runs the stage as far as its inputs allow. True if it delivered anything.
  bool advance(std::size_t stage) {
    State& state = states_[stage];
    const std::int64_t before = state.done;
    while (state.done < 2 * times_.microBatches) {
      const Step step = stepOf(stage, state.done);
      Seconds& arrival = (step.forward ? state.activationAt : state.gradientAt)[slotOf(step.microBatch)];
      const Seconds ready = arrival;
      if (ready < Seconds{}) break;
      if (!step.forward || stage > 0) arrival = kNotYet;  // the first stage finds every input at hand
      execute(stage, step, ready);
      ++state.done;
    }
    return state.done != before;
  }

  void execute(std::size_t stage, Step step, Seconds ready) {
    State& state = states_[stage];
    const StageTime& time = times_.of(stage, step.microBatch);
    const Seconds start = std::max(state.free, ready);
    const Seconds end = start + (step.forward ? time.forward : time.backward);
    const int lane = static_cast<int>(stage);
    if (start > state.free) add(Span::Kind::Wait, lane, step.microBatch, state.free, start, step.forward ? lane - 1 : lane + 1);
    add(step.forward ? Span::Kind::Forward : Span::Kind::Backward, lane, step.microBatch, start, end);
    state.free = state.activity.end = end;
    state.activity.busy += end - start;

    const std::size_t m = slotOf(step.microBatch);
    if (step.forward && stage + 1 == stageCount_) {
      state.gradientAt[m] = end;  // the loss: its backward may follow at once
    } else if (step.forward) {
      states_[stage + 1].activationAt[m] = send(stage, step.microBatch, end, time.send);
    } else if (stage > 0) {
      states_[stage - 1].gradientAt[m] = send(stage, step.microBatch, end, times_.of(stage - 1, step.microBatch).send);
    }
  }

  Seconds send(std::size_t stage, std::int64_t microBatch, Seconds ready, Seconds duration) {
    State& state = states_[stage];
    const Seconds start = std::max(ready, state.linkFree);
    state.linkFree = start + duration;
    state.activity.sending += duration;
    if (duration > Seconds{}) add(Span::Kind::Send, static_cast<int>(stage), microBatch, start, state.linkFree);
    return state.linkFree;
  }

  void add(Span::Kind kind, int lane, std::int64_t microBatch, Seconds start, Seconds end, int waitsForLane = -1) {
    if (spans_) spans_->push_back({kind, lane, microBatch, start, end, waitsForLane});
  }

  Simulation summary() const {
    Simulation simulation;
    Seconds waiting;
    for (const State& state : states_) {
      assert(state.done == 2 * times_.microBatches);
      simulation.time = std::max(simulation.time, state.free);
    }
    for (const State& state : states_) {
      simulation.stages.push_back(state.activity);
      simulation.stages.back().waiting = simulation.time - state.activity.busy;
      waiting += simulation.stages.back().waiting;
    }
    if (simulation.time > Seconds{}) simulation.bubbleFraction = waiting / simulation.time / static_cast<double>(stageCount_);
    return simulation;
  }

  const PipelineTimes& times_;
  std::vector<Span>* spans_;
  std::size_t stageCount_;
  std::vector<State> states_;
};

}  // namespace

Simulation simulate(const PipelineTimes& times, std::vector<Span>* spans) {
  assert(!times.full.empty() && times.full.size() == times.last.size() && times.microBatches >= 1);
  return times.transfers == Transfers::Overlapped ? Simulator(times, spans).run() : simulateBlocking(times, spans);
}

}  // namespace evenkeel
