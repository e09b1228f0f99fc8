// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace evenkeel::gui {

/// Works things out on a thread of its own and hands them over in the owner's thread, which stays free for the person. One at a
/// time; of those that wait only the newest is kept.
class Background final : public QObject {
 public:
  using QObject::QObject;
  /// Drops what waits and waits for what is being worked out.
  ~Background() override;

  /// `work` must not touch what the owner's thread may change; `take` gets its value later, in the owner's thread.
  template <class Work, class Take>
  void run(Work work, Take take) {
    start([work = std::move(work), take = std::move(take)]() mutable -> std::function<void()> {
      return [take = std::move(take), value = std::make_shared<decltype(work())>(work())]() mutable { take(std::move(*value)); };
    });
  }
  /// Nothing that was asked for until now is handed over any more.
  void forget();
  [[nodiscard]] bool isBusy() const { return pending_ > 0; }

 private:
  using Delivery = std::function<void()>;
  struct Task {
    std::function<Delivery()> work;
    int epoch = 0;
  };
  void start(std::function<Delivery()> work);
  void loop(const std::stop_token& stop);
  void deliver(int epoch, int count, const Delivery& delivery);

  int epoch_ = 0, pending_ = 0;  // of the owner's thread: what was asked for and has not come
  std::mutex mutex_;             // of what follows
  std::condition_variable_any changed_;
  std::optional<Task> next_;
  int replaced_ = 0;  // tasks that gave way to next_
  std::jthread thread_;
};

}  // namespace evenkeel::gui
