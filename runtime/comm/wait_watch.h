// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/device/compute_clock.h"

namespace evenkeel {

/// Looks over the shoulder of a thread that waits for peers. What has lasted long is told, so that others can see who waits for
/// whom; what lasts for ever although it has a deadline (gloo #520) is told too, so that the process can end.
/// The callbacks run in a thread of this object.
class WaitWatch {
 public:
  struct Rules {
    Seconds longAfter, stuckAfter;
    std::function<void(const std::vector<int>& peers)> onLong;
    std::function<void()> onLongOver;  // a wait that was told as long has ended after all
    std::function<void(const std::vector<int>& peers)> onStuck;
  };
  explicit WaitWatch(Rules rules);
  ~WaitWatch();
  WaitWatch(const WaitWatch&) = delete;
  WaitWatch& operator=(const WaitWatch&) = delete;

  /// The caller begins to wait for these ranks; one of end() and giveUp() follows. Costs some microseconds.
  void begin(std::vector<int> peers);
  void end();
  /// As end(), but what was told as long is not taken back.
  void giveUp();

 private:
  void watch();

  Rules rules_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> peers_;
  SteadyClock::time_point since_;
  bool waits_ = false, wasLong_ = false, isOver_ = false, wasStuck_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace evenkeel
