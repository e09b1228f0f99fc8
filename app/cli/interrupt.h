// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <thread>

namespace evenkeel::cli {

/// Turns Ctrl-C (SIGINT) and SIGTERM into calls of a function on a thread of its own, while it lives. Make it before any other
/// thread starts: it blocks the signals in the calling thread, and threads inherit that.
class InterruptWatch {
 public:
  /// onInterrupt(n) is called for the n-th interrupt, n from 1.
  explicit InterruptWatch(std::function<void(int)> onInterrupt);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  int signals_ = -1, wake_ = -1;
  std::thread thread_;
};

}  // namespace evenkeel::cli
