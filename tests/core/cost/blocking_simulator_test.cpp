// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/blocking_simulator.h"

#include <gtest/gtest.h>

#include "tests/core/cost/pipelines.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

PipelineTimes twoStages(Transfers transfers, bool buffered) {
  PipelineTimes times;
  times.full = {{{1.0}, {2.0}, {0.5}, buffered}, {{1.0}, {2.0}, {}, buffered}};
  times.last = times.full;
  times.microBatches = 2;
  times.transfers = transfers;
  return times;
}

TEST(BlockingSimulator, SendsAnActivationOnlyBehindTheGradientThatIsDueWhereTransfersAreDeferred) {
  // Stage 0: F 0-1, send 1-1.5, F 1.5-2.5, waits for the gradient 4.5-5, sends 5-5.5, B 5.5-7.5, gradient 8.5-9, B 9-11.
  EXPECT_DOUBLE_EQ(simulate(twoStages(Transfers::Deferred, false)).time.value, 11.0);
}

TEST(BlockingSimulator, SendsAndReceivesAtOnceWhereTransfersArePaired) {
  // Stage 0: F 0-1, send 1-1.5, F 1.5-2.5, both ways 4.5-5, B 5-7, gradient 8-8.5, B 8.5-10.5.
  EXPECT_DOUBLE_EQ(simulate(twoStages(Transfers::Paired, false)).time.value, 10.5);
}

TEST(BlockingSimulator, LetsTheSenderOfABufferedMessageGoOn) {
  // Stage 1: activation 1-1.5, F -2.5, B -4.5, its gradient arrives at 5; stage 0 sends its second activation at 5, works 5-7.
  // Stage 1: F 5.5-6.5, B -8.5, gradient at 9; stage 0: B 9-11.
  EXPECT_DOUBLE_EQ(simulate(twoStages(Transfers::Deferred, true)).time.value, 11.0);
  EXPECT_LT(simulate(twoStages(Transfers::Deferred, true)).stages[0].busy.value, 6.0 + 1e-12);
}

TEST(BlockingSimulator, WorksOffEveryMicroBatchAndNeverBeatsTheLowerBound) {
  for (std::uint64_t index = 0; index < static_cast<std::uint64_t>(sweep(1500, 12'000)); ++index) {
    for (const Transfers transfers : {Transfers::Deferred, Transfers::Paired}) {
      PipelineTimes times = randomPipeline(index);
      times.transfers = transfers;
      const Simulation blocked = simulate(times);
      const double bound = pipelineLowerBound(times).value;
      ASSERT_GE(blocked.time.value, bound * (1 - 1e-12)) << "pipeline " << index;
      for (std::size_t s = 0; s < times.full.size(); ++s) {
        const double work = static_cast<double>(times.microBatches - 1) * (times.full[s].forward + times.full[s].backward).value +
                            (times.last[s].forward + times.last[s].backward).value;
        ASSERT_NEAR(blocked.stages[s].busy.value, work, 1e-9 * work) << "pipeline " << index << ", stage " << s;
      }
      for (std::vector<StageTime>* stages : {&times.full, &times.last}) {
        for (StageTime& stage : *stages) stage.buffered = true;
      }
      const Simulation buffered = simulate(times);
      ASSERT_GE(buffered.time.value, bound * (1 - 1e-12)) << "pipeline " << index;
      ASSERT_LE(buffered.time.value, blocked.time.value * (1 + 1e-12)) << "pipeline " << index;
    }
  }
}

TEST(BlockingSimulator, DrawsAsMuchWorkAsItCounts) {
  PipelineTimes times = randomPipeline(11);
  times.transfers = Transfers::Paired;
  std::vector<Span> spans;
  const Simulation simulation = simulate(times, &spans);
  double drawn = 0, counted = 0;
  for (const Span& span : spans) {
    if (span.kind == Span::Kind::Forward || span.kind == Span::Kind::Backward) drawn += (span.end - span.start).value;
  }
  for (const StageActivity& stage : simulation.stages) counted += stage.busy.value;
  EXPECT_NEAR(drawn, counted, 1e-9 * counted);
}

}  // namespace
}  // namespace evenkeel
