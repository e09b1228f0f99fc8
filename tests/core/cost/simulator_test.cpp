// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/simulator.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/core/cost/pipelines.h"

namespace evenkeel {
namespace {

PipelineTimes equalStages(std::size_t stages, std::int64_t microBatches, StageTime time) {
  PipelineTimes times;
  times.full.assign(stages, time);
  times.full.back().send = {};
  times.last = times.full;
  times.microBatches = microBatches;
  return times;
}

TEST(Simulation, EqualsTheClosedFormForEqualStagesWithoutSends) {
  for (const std::size_t stages : {1U, 2U, 3U, 8U, 17U}) {
    for (const std::int64_t count : {1, 2, 7, 8, 40}) {
      const PipelineTimes times = equalStages(stages, count, {{1.0}, {2.0}, {}});
      const Simulation simulation = simulate(times);
      EXPECT_DOUBLE_EQ(simulation.time.value, closedForm(times).value) << stages << " stages, " << count;
      const double p = static_cast<double>(stages), m = static_cast<double>(count);
      EXPECT_NEAR(simulation.bubbleFraction, (p - 1) / (m + p - 1), 1e-12);
    }
  }
}

// alpa #459: transfer between stages left out (field-faults).
TEST(Simulation, WaitsForSends) {
  const Seconds without = simulate(equalStages(2, 4, {{1.0}, {2.0}, {}})).time;
  const Simulation with = simulate(equalStages(2, 4, {{1.0}, {2.0}, {0.5}}));
  EXPECT_GT(with.time, without);
  EXPECT_DOUBLE_EQ(with.stages[0].sending.value, 2.0);  // four activations; the last stage returns four gradients
  EXPECT_DOUBLE_EQ(with.stages[1].sending.value, 2.0);
}

TEST(Simulation, ChargesASmallerLastMicroBatchForWhatItIs) {
  PipelineTimes times = equalStages(1, 3, {{1.0}, {2.0}, {}});
  times.last = {{{0.25}, {0.5}, {}}};
  EXPECT_DOUBLE_EQ(simulate(times).time.value, 6.75);
}

TEST(Simulation, RunsEveryMicroBatchOnceForwardAndOnceBackwardInEveryStageWithoutOverlap) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    const PipelineTimes times = randomPipeline(i);
    std::vector<Span> spans;
    const Simulation simulation = simulate(times, &spans);
    std::map<int, Seconds> laneEnd;
    std::map<std::pair<int, int>, std::vector<bool>> done;
    std::map<int, int> held;
    const int stages = static_cast<int>(times.full.size());
    for (const Span& span : spans) {  // in the order of each lane
      ASSERT_LE(span.start, span.end);
      if (span.kind == Span::Kind::Send) continue;
      ASSERT_GE(span.start.value, laneEnd[span.lane].value - 1e-12);
      laneEnd[span.lane] = span.end;
      if (span.kind == Span::Kind::Wait) {
        ASSERT_TRUE(span.waitsForLane == span.lane - 1 || span.waitsForLane == span.lane + 1);
        continue;
      }
      auto& seen = done[{span.lane, static_cast<int>(span.kind)}];
      seen.resize(static_cast<std::size_t>(times.microBatches));
      ASSERT_FALSE(seen[static_cast<std::size_t>(span.microBatch)]);
      seen[static_cast<std::size_t>(span.microBatch)] = true;
      // 1F1B: never more than min(P - i, M) activations at once, which is what the memory model charges.
      int& count = held[span.lane];
      count += span.kind == Span::Kind::Forward ? 1 : -1;
      ASSERT_LE(count, std::min<std::int64_t>(stages - span.lane, times.microBatches));
    }
    ASSERT_EQ(done.size(), 2 * times.full.size());
    for (const auto& [key, seen] : done) ASSERT_EQ(std::ranges::count(seen, true), times.microBatches);
    for (const auto& [lane, end] : laneEnd) ASSERT_LE(end, simulation.time);
  }
}

TEST(Simulation, HandlesAThousandStagesTimesAThousandMicroBatches) {
  const PipelineTimes times = equalStages(1024, 1000, {{1.0}, {2.0}, {}});
  EXPECT_NEAR(simulate(times).time.value, closedForm(times).value, 1e-6);
}

}  // namespace
}  // namespace evenkeel
