// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/compute_clock.h"

#include <gtest/gtest.h>

namespace evenkeel {
namespace {

/// Works until the thread has used 5 ms of CPU time; returns how much it was.
Seconds work() {
  const Seconds start = threadCpuTime();
  while ((threadCpuTime() - start).value < 0.005) {
  }
  return threadCpuTime() - start;
}

TEST(ComputeClock, StretchesCpuTimeByTheSpeed) {
  ComputeClock clock(0.25);
  Seconds used;
  clock.run([&] { used = work(); });
  // No upper bound: a busy machine may preempt us for any time.
  EXPECT_GE(clock.total().value, used.value / 0.25);
}

TEST(ComputeClock, DoesNotCountWhatIsOutsideOfIt) {
  ComputeClock clock(0.5);
  (void)work();
  EXPECT_EQ(clock.total(), Seconds{});
  clock.run([] {});
  EXPECT_GT(clock.takeTotal(), Seconds{});
  EXPECT_EQ(clock.total(), Seconds{});
}

TEST(ComputeClock, CountsUntilADeviceThatComputesBehindOurBackIsDone) {
  bool isDone = false;
  Seconds used;
  ComputeClock clock(1.0, [&] {
    EXPECT_TRUE(isDone) << "asked once everything was given to the device";
    used = work();
  });
  clock.run([&] { isDone = true; });
  EXPECT_GE(clock.takeTotal().value, used.value);
  EXPECT_GE(clock.takeCpu().value, used.value);
}

}  // namespace
}  // namespace evenkeel
