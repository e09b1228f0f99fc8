// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/comm/wait_watch.h"

#include <cassert>
#include <utility>

namespace evenkeel {
namespace {

SteadyClock::duration durationOf(Seconds time) {
  return std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(time.value));
}

}  // namespace

WaitWatch::WaitWatch(Rules rules) : rules_(std::move(rules)), thread_([this] { watch(); }) {}

WaitWatch::~WaitWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void WaitWatch::begin(std::vector<int> peers) {
  {
    const std::lock_guard lock(mutex_);
    assert(!waits_);
    peers_ = std::move(peers);
    since_ = SteadyClock::now();
    waits_ = true;
  }
  changed_.notify_one();
}

void WaitWatch::end() {
  {
    const std::lock_guard lock(mutex_);
    waits_ = false;
    isOver_ = std::exchange(wasLong_, false) || isOver_;
    wasStuck_ = false;
    if (!isOver_) return;
  }
  changed_.notify_one();
}

void WaitWatch::giveUp() {
  const std::lock_guard lock(mutex_);
  waits_ = wasLong_ = wasStuck_ = false;
}

void WaitWatch::watch() {
  std::unique_lock lock(mutex_);
  const auto tell = [&](const auto& callback, const auto&... arguments) {
    lock.unlock();
    callback(arguments...);
    lock.lock();
  };
  while (!ends_) {
    if (std::exchange(isOver_, false)) {
      tell(rules_.onLongOver);
    } else if (!waits_ || wasStuck_) {
      changed_.wait(lock);
    } else if (const auto due = since_ + durationOf(wasLong_ ? rules_.stuckAfter : rules_.longAfter); SteadyClock::now() < due) {
      changed_.wait_until(lock, due);
    } else if (wasLong_) {
      wasStuck_ = true;
      tell(rules_.onStuck, std::vector<int>(peers_));
    } else {
      wasLong_ = true;
      tell(rules_.onLong, std::vector<int>(peers_));
    }
  }
}

}  // namespace evenkeel
