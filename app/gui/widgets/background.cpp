// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/widgets/background.h"

#include <utility>

namespace evenkeel::gui {

Background::~Background() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Background::start(std::function<Delivery()> work) {
  ++pending_;
  const std::lock_guard lock(mutex_);
  replaced_ += next_.has_value() ? 1 : 0;
  next_ = Task{std::move(work), epoch_};
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { loop(stop); });
  changed_.notify_one();
}

void Background::forget() {
  ++epoch_;
  pending_ = 0;
}

void Background::loop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return next_.has_value(); }) && !stop.stop_requested()) {
    Task task = *std::exchange(next_, std::nullopt);
    const int count = 1 + std::exchange(replaced_, 0);
    lock.unlock();
    QMetaObject::invokeMethod(
        this, [this, epoch = task.epoch, count, delivery = task.work()] { deliver(epoch, count, delivery); },
        Qt::QueuedConnection);
    lock.lock();
  }
}

void Background::deliver(int epoch, int count, const Delivery& delivery) {
  if (epoch != epoch_) return;
  pending_ -= count;
  delivery();
}

}  // namespace evenkeel::gui
