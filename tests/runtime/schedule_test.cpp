// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "core/base/random.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;

/// Runs the instruction lists of all stages of one pipeline against each other: a send leaves its message and goes on, a receive
/// needs the message. Notes what is wrong instead of failing, so that it can be shown whole.
class Simulation {
 public:
  Simulation(int stages, int microBatches) : microBatches_(microBatches) {
    for (int stage = 0; stage < stages; ++stage) lists_.push_back(oneForwardOneBackward({stage, stages, microBatches}));
    next_.resize(lists_.size());
    inFlight_.resize(lists_.size());
    deepest_.resize(lists_.size());
    done_.resize(lists_.size());
  }

  std::string run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < lists_.size(); ++stage) {
        while (next_[stage] < lists_[stage].size() && step(stage, lists_[stage][next_[stage]])) {
          ++next_[stage];
          moved = true;
        }
      }
    }
    for (std::size_t stage = 0; stage < lists_.size(); ++stage) {
      if (next_[stage] != lists_[stage].size()) problem_ += "stage " + std::to_string(stage) + " is stuck; ";
      const int bound = std::min(static_cast<int>(lists_.size() - stage), microBatches_);
      if (deepest_[stage] > bound) problem_ += "stage " + std::to_string(stage) + " holds too many; ";
      if (done_[stage] != microBatches_) problem_ += "stage " + std::to_string(stage) + " lost micro-batches; ";
    }
    if (!messages_.empty()) problem_ += "a message was never received; ";
    return problem_;
  }

 private:
  bool take(bool isActivation, std::size_t to, int microBatch) { return messages_.erase({isActivation, to, microBatch}) == 1; }

  bool step(std::size_t stage, Instruction instruction) {
    const int m = instruction.microBatch;
    switch (instruction.action) {
      case Action::ReceiveActivation: return take(true, stage, m);
      case Action::ReceiveGradient: return take(false, stage, m);
      case Action::SendActivation: messages_.insert({true, stage + 1, m}); return true;
      case Action::SendGradient: messages_.insert({false, stage - 1, m}); return true;
      case Action::Forward:
        inFlight_[stage].insert(m);
        deepest_[stage] = std::max(deepest_[stage], static_cast<int>(inFlight_[stage].size()));
        return true;
      case Action::Backward:
        if (inFlight_[stage].erase(m) != 1) problem_ += "backward without its forward; ";
        if (m != done_[stage]++) problem_ += "backwards out of order; ";
        return true;
    }
    return false;
  }

  int microBatches_;
  std::vector<std::vector<Instruction>> lists_;
  std::vector<std::size_t> next_;
  std::vector<std::set<int>> inFlight_;
  std::vector<int> deepest_, done_;
  std::set<std::tuple<bool, std::size_t, int>> messages_;  // activation or gradient, to which stage, micro-batch
  std::string problem_;
};

TEST(Schedule, RunsToItsEndWithFewEnoughMicroBatchesInFlight) {
  for (int stages = 1; stages <= 9; ++stages) {
    for (int microBatches = 1; microBatches <= 12; ++microBatches) {
      EXPECT_EQ(Simulation(stages, microBatches).run(), "") << stages << " stages, " << microBatches << " micro-batches";
    }
  }
  const CounterRandom random(3, "schedules");
  for (std::uint64_t i = 0; i < 60; ++i) {
    const int stages = 1 + static_cast<int>(random.below(2 * i, 40)),
              microBatches = 1 + static_cast<int>(random.below(2 * i + 1, 80));
    EXPECT_EQ(Simulation(stages, microBatches).run(), "") << stages << " stages, " << microBatches << " micro-batches";
  }
}

TEST(Schedule, AlternatesOnceThePipelineIsFull) {
  using enum Action;
  EXPECT_THAT(oneForwardOneBackward({.stage = 0, .stages = 2, .microBatches = 3}),
              ElementsAre(Instruction{Forward, 0}, Instruction{SendActivation, 0}, Instruction{Forward, 1},
                          Instruction{SendActivation, 1}, Instruction{ReceiveGradient, 0}, Instruction{Backward, 0},
                          Instruction{Forward, 2}, Instruction{SendActivation, 2}, Instruction{ReceiveGradient, 1},
                          Instruction{Backward, 1}, Instruction{ReceiveGradient, 2}, Instruction{Backward, 2}));
}

TEST(Schedule, SendsNothingWhereOneStageIsAll) {
  using enum Action;
  EXPECT_THAT(oneForwardOneBackward({.stage = 0, .stages = 1, .microBatches = 2}),
              ElementsAre(Instruction{Forward, 0}, Instruction{Backward, 0}, Instruction{Forward, 1}, Instruction{Backward, 1}));
}

}  // namespace
}  // namespace evenkeel
