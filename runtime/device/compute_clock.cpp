// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/compute_clock.h"

#include <cassert>
#include <ctime>
#include <thread>
#include <utility>

namespace evenkeel {

namespace {

Seconds timeOf(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return {static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9};
}

}  // namespace

Seconds threadCpuTime() { return timeOf(CLOCK_THREAD_CPUTIME_ID); }

Seconds processCpuTime() { return timeOf(CLOCK_PROCESS_CPUTIME_ID); }

ComputeClock::ComputeClock(double speed, std::function<void()> synchronize) : speed_(speed), synchronize_(std::move(synchronize)) {
  assert(speed > 0);
}

/// Where a device computes, its backward runs in a thread of LibTorch's.
Seconds ComputeClock::cpuTime() const { return synchronize_ ? processCpuTime() : threadCpuTime(); }

void ComputeClock::run(const std::function<void()>& work) {
  const auto start = SteadyClock::now();
  const Seconds cpuStart = cpuTime();
  work();
  if (synchronize_) synchronize_();
  const Seconds used = cpuTime() - cpuStart;
  cpu_ += used;
  if (speed_ < 1.0) {
    const Seconds due = used / speed_;
    std::this_thread::sleep_until(start +
                                  std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(due.value)));
  }
  total_ += secondsSince(start);
}

Seconds ComputeClock::takeTotal() { return std::exchange(total_, Seconds{}); }

Seconds ComputeClock::takeCpu() { return std::exchange(cpu_, Seconds{}); }

}  // namespace evenkeel
