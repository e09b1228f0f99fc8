// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/blocking_simulator.h"

#include <algorithm>
#include <array>
#include <utility>

namespace evenkeel {
namespace {

constexpr Seconds kNotYet{-1.0};

/// One instruction of a stage. Transfers name the micro-batch that they carry.
struct Instruction {
  enum class Kind { Forward, Backward, SendActivation, ReceiveActivation, SendGradient, ReceiveGradient };
  Kind kind;
  std::int64_t microBatch;
  bool withNext = false;  // begins together with the next one, and both must end: Paired
};
using Kind = Instruction::Kind;

/// The instructions of one stage in its order, made step by step: a step is a forward or a backward with what stands around it.
class Schedule {
 public:
  Schedule(std::size_t stage, std::size_t stageCount, std::int64_t microBatches, Transfers transfers)
      : isFirst_(stage == 0),
        isLast_(stage + 1 == stageCount),
        count_(microBatches),
        distance_(static_cast<std::int64_t>(stageCount - 1 - stage)),
        ahead_(std::min(distance_, microBatches)),
        transfers_(transfers) {}

  /// The next instructions; false if there are none left.
  bool next(std::vector<Instruction>& instructions) {
    if (done_ == 2 * count_ && pending_.empty()) return false;
    if (done_ == 2 * count_) {
      instructions = std::exchange(pending_, {});
      return true;
    }
    instructions.clear();
    const auto [forward, m] = stepAt(done_);
    if (transfers_ == Transfers::Deferred) deferredStep(forward, m, instructions);
    else pairedStep(forward, m, instructions);
    ++done_;
    return true;
  }

 private:
  struct Step {
    bool forward;
    std::int64_t microBatch;
  };
  [[nodiscard]] Step stepAt(std::int64_t index) const {
    if (index < ahead_) return {true, index};
    if (index >= 2 * count_ - ahead_) return {false, index - count_};
    const std::int64_t pair = (index - ahead_) / 2;
    return (index - ahead_) % 2 == 0 ? Step{true, ahead_ + pair} : Step{false, pair};
  }

  void flush(std::vector<Instruction>& out) {
    out.insert(out.end(), pending_.begin(), pending_.end());
    pending_.clear();
  }

  /// An activation waits for the gradient of the backward that follows its forward in the steady state.
  void deferredStep(bool forward, std::int64_t m, std::vector<Instruction>& out) {
    if (forward) {
      flush(out);
      if (!isFirst_) out.push_back({Kind::ReceiveActivation, m});
      out.push_back({Kind::Forward, m});
      if (!isLast_) pending_ = {{Kind::SendActivation, m}};
      return;
    }
    const bool waits =
        !pending_.empty() && pending_.front().kind == Kind::SendActivation && pending_.front().microBatch == distance_ + m;
    if (!waits) flush(out);
    if (!isLast_) out.push_back({Kind::ReceiveGradient, m});
    flush(out);
    out.push_back({Kind::Backward, m});
    if (!isFirst_) pending_ = {{Kind::SendGradient, m}};
  }

  /// A send is paired with the receive of the step that follows where that one is of the other direction.
  void pairedStep(bool forward, std::int64_t m, std::vector<Instruction>& out) {
    std::vector<Instruction> receive;
    if (forward && !isFirst_) receive = {{Kind::ReceiveActivation, m}};
    if (!forward && !isLast_) receive = {{Kind::ReceiveGradient, m}};
    const bool pairs = !pending_.empty() && !receive.empty() && (pending_.front().kind == Kind::SendActivation) == !forward;
    if (pairs) pending_.front().withNext = true;
    flush(out);
    out.insert(out.end(), receive.begin(), receive.end());
    out.push_back({forward ? Kind::Forward : Kind::Backward, m});
    if (forward && !isLast_) pending_ = {{Kind::SendActivation, m}};
    if (!forward && !isFirst_) pending_ = {{Kind::SendGradient, m}};
  }

  bool isFirst_, isLast_;
  std::int64_t count_, distance_, ahead_, done_ = 0;
  Transfers transfers_;
  std::vector<Instruction> pending_;  // the send of the step before
};

/// One boundary, one direction. At most `stages` transfers of it are under way, so slots are reused by micro-batch.
struct Channel {
  struct Slot {
    Seconds sender = kNotYet, receiver = kNotYet, arrival = kNotYet;
  };
  std::vector<Slot> slots;
  Seconds free;  // buffered transfers leave one after the other
};

class BlockingSimulator {
 public:
  BlockingSimulator(const PipelineTimes& times, std::vector<Span>* spans) : times_(times), spans_(spans) {
    const std::size_t count = times.full.size();
    const auto slots = static_cast<std::size_t>(std::min(static_cast<std::int64_t>(count) + 1, times.microBatches));
    for (std::size_t stage = 0; stage < count; ++stage) {
      states_.push_back({Schedule(stage, count, times.microBatches, times.transfers), {}, 0, false, {}, {}});
      for (auto& direction : channels_) {
        direction.emplace_back();
        direction.back().slots.resize(slots);
      }
    }
  }

  Simulation run() {
    std::vector<std::size_t> awake;
    for (std::size_t stage = states_.size(); stage-- > 0;) awake.push_back(stage);
    while (!awake.empty()) {
      const std::size_t stage = awake.back();
      awake.pop_back();
      if (!advance(stage)) continue;
      if (stage > 0) awake.push_back(stage - 1);
      if (stage + 1 < states_.size()) awake.push_back(stage + 1);
    }
    return summary();
  }

 private:
  struct State {
    Schedule schedule;
    std::vector<Instruction> instructions;
    std::size_t at = 0;
    bool hasPosted = false;  // came to the transfers at `at`, which are not done
    Seconds free;
    StageActivity activity;
  };

  /// Runs the stage until it waits for another. True if the others may go on: it ran, or came to a transfer.
  bool advance(std::size_t stage) {
    State& state = states_[stage];
    bool moved = false;
    while (true) {
      if (state.at == state.instructions.size()) {
        if (!state.schedule.next(state.instructions)) return moved;
        state.at = 0;
        continue;
      }
      const Instruction& instruction = state.instructions[state.at];
      if (instruction.kind == Kind::Forward || instruction.kind == Kind::Backward) {
        compute(stage, instruction);
        ++state.at;
        moved = true;
        continue;
      }
      const std::size_t together = instruction.withNext ? 2 : 1;
      Seconds end = state.free;
      bool complete = true;
      for (std::size_t i = 0; i < together; ++i) {
        if (!state.hasPosted) post(stage, state.instructions[state.at + i]);
        const Seconds transferred = transfer(stage, state.instructions[state.at + i]);
        complete = complete && transferred >= Seconds{};
        end = std::max(end, transferred);
      }
      moved = moved || !state.hasPosted;
      state.hasPosted = !complete;
      if (!complete) return moved;
      for (std::size_t i = 0; i < together; ++i) leave(stage, state.instructions[state.at + i]);
      if (end > state.free)
        add(Span::Kind::Wait, stage, instruction.microBatch, state.free, end, static_cast<int>(peerOf(stage, instruction)));
      state.free = end;
      state.at += together;
      moved = true;
    }
  }

  void compute(std::size_t stage, const Instruction& instruction) {
    State& state = states_[stage];
    const StageTime& time = times_.of(stage, instruction.microBatch);
    const bool forward = instruction.kind == Kind::Forward;
    const Seconds duration = forward ? time.forward : time.backward;
    add(forward ? Span::Kind::Forward : Span::Kind::Backward, stage, instruction.microBatch, state.free, state.free + duration);
    state.free += duration;
    state.activity.busy += duration;
    state.activity.end = state.free;
  }

  static bool isSend(const Instruction& i) { return i.kind == Kind::SendActivation || i.kind == Kind::SendGradient; }
  static bool isGradient(const Instruction& i) { return i.kind == Kind::SendGradient || i.kind == Kind::ReceiveGradient; }
  /// Activations leave to and gradients come from the next stage.
  static std::size_t peerOf(std::size_t stage, const Instruction& i) {
    return isSend(i) == isGradient(i) ? stage - 1 : stage + 1;
  }

  [[nodiscard]] const StageTime& timeOf(std::size_t stage, const Instruction& i) const {
    return times_.of(std::min(stage, peerOf(stage, i)), i.microBatch);
  }
  Channel& channelOf(std::size_t stage, const Instruction& i) {
    return channels_[isGradient(i) ? 1 : 0][std::min(stage, peerOf(stage, i))];
  }
  Channel::Slot& slotOf(std::size_t stage, const Instruction& i) {
    Channel& channel = channelOf(stage, i);
    return channel.slots[static_cast<std::size_t>(i.microBatch) % channel.slots.size()];
  }

  void post(std::size_t stage, const Instruction& i) {
    Channel::Slot& slot = slotOf(stage, i);
    (isSend(i) ? slot.sender : slot.receiver) = states_[stage].free;
    if (isSend(i)) states_[stage].activity.sending += timeOf(stage, i).send;
  }

  /// When the stage is done with the transfer; kNotYet while the other end has not come to it.
  Seconds transfer(std::size_t stage, const Instruction& i) {
    const StageTime& time = timeOf(stage, i);
    if (isSend(i) && time.buffered && states_[stage].hasPosted) return states_[stage].free;
    Channel& channel = channelOf(stage, i);
    Channel::Slot& slot = slotOf(stage, i);
    const Seconds now = states_[stage].free;
    if (slot.arrival < Seconds{} && slot.sender >= Seconds{} && (time.buffered || slot.receiver >= Seconds{})) {
      const Seconds start = time.buffered ? std::max(slot.sender, channel.free) : std::max(slot.sender, slot.receiver);
      slot.arrival = channel.free = start + time.send;
      addSend(stage, i, start, slot.arrival);
    }
    if (isSend(i) && time.buffered) return now;
    return slot.arrival < Seconds{} ? kNotYet : std::max(now, slot.arrival);
  }

  /// Both ends are done: the slot may serve a later micro-batch. The receiver is the last to leave a buffered one.
  void leave(std::size_t stage, const Instruction& i) {
    Channel::Slot& slot = slotOf(stage, i);
    const bool buffered = timeOf(stage, i).buffered;
    if (buffered && isSend(i)) return;
    if (buffered) {
      slot = {};
      return;
    }
    constexpr Seconds kLeft{-2.0};
    (isSend(i) ? slot.sender : slot.receiver) = kLeft;
    if (slot.sender == kLeft && slot.receiver == kLeft) slot = {};
  }

  void addSend(std::size_t stage, const Instruction& i, Seconds start, Seconds end) {
    const std::size_t sender = isSend(i) ? stage : peerOf(stage, i);
    if (end > start) add(Span::Kind::Send, sender, i.microBatch, start, end);
  }

  void add(Span::Kind kind, std::size_t lane, std::int64_t microBatch, Seconds start, Seconds end, int waitsForLane = -1) {
    if (spans_) spans_->push_back({kind, static_cast<int>(lane), microBatch, start, end, waitsForLane});
  }

  Simulation summary() const {
    Simulation simulation;
    for (const State& state : states_) simulation.time = std::max(simulation.time, state.free);
    Seconds waiting;
    for (const State& state : states_) {
      simulation.stages.push_back(state.activity);
      simulation.stages.back().waiting = simulation.time - state.activity.busy;
      waiting += simulation.stages.back().waiting;
    }
    if (simulation.time > Seconds{}) simulation.bubbleFraction = waiting / simulation.time / static_cast<double>(states_.size());
    return simulation;
  }

  const PipelineTimes& times_;
  std::vector<Span>* spans_;
  std::vector<State> states_;
  std::array<std::vector<Channel>, 2> channels_;  // activations, gradients; by boundary
};

}  // namespace

Simulation simulateBlocking(const PipelineTimes& times, std::vector<Span>* spans) {
  return BlockingSimulator(times, spans).run();
}

}  // namespace evenkeel
