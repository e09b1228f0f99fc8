// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <functional>

#include "core/base/units.h"

namespace evenkeel {

using SteadyClock = std::chrono::steady_clock;

[[nodiscard]] inline Seconds secondsSince(SteadyClock::time_point start) {
  return {std::chrono::duration<double>(SteadyClock::now() - start).count()};
}

/// CPU time that the calling thread has used.
[[nodiscard]] Seconds threadCpuTime();
/// CPU time that all threads of this process have used since it was started.
[[nodiscard]] Seconds processCpuTime();

/// Runs computations as a device of a given speed would: at speed 0.25, work that took t of the thread's CPU time lasts 4 t of
/// wall time; the rest is slept. Preemption by other processes counts as part of the sleep, so that a busy machine does not make
/// a slow device slower still. Speed >= 1: as fast as it goes.
class ComputeClock {
 public:
  /// `synchronize`: waits for a device that computes behind our back. Its time is the wall's, its CPU time that of the whole process.
  explicit ComputeClock(double speed, std::function<void()> synchronize = {});

  /// Runs `work`, sleeps what is due, adds the wall time of both to total().
  void run(const std::function<void()>& work);

  [[nodiscard]] Seconds total() const { return total_; }
  /// total() since the last call of it.
  [[nodiscard]] Seconds takeTotal();
  /// CPU time of the work itself since the last call of it.
  [[nodiscard]] Seconds takeCpu();

 private:
  [[nodiscard]] Seconds cpuTime() const;

  double speed_;
  std::function<void()> synchronize_;
  Seconds total_, cpu_;
};

}  // namespace evenkeel
