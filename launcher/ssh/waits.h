// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "core/base/result.h"

namespace evenkeel {

/// A file descriptor, closed when it goes.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() { close(); }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void close();

 private:
  int fd_ = -1;
};

/// A stop token as a descriptor that turns readable, so that poll() wakes for it.
class StopEvent {
 public:
  explicit StopEvent(std::stop_token stop);
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool stopped() const { return stop_.stop_requested(); }

 private:
  struct Signal {
    int fd;
    void operator()() const;
  };
  std::stop_token stop_;
  OwnedFd fd_;
  std::optional<std::stop_callback<Signal>> callback_;
};

/// How long one command may still take, as a whole and since something last moved.
class TimeLimits {
 public:
  using Clock = std::chrono::steady_clock;
  TimeLimits(std::optional<std::chrono::milliseconds> deadline, std::optional<std::chrono::milliseconds> silence);

  void moved() { lastMove_ = Clock::now(); }
  /// For poll(): milliseconds until the nearer limit, 0 if it has passed, -1 if there is none.
  [[nodiscard]] int pollTimeout() const;
  /// What ran out, if anything has: "has not ended within 3 s", "has been silent for 20 s".
  [[nodiscard]] std::optional<std::string> expired() const;

 private:
  std::optional<std::chrono::milliseconds> deadline_, silence_;
  Clock::time_point start_, lastMove_;
};

[[nodiscard]] inline Error cancelled(std::string where, std::string what, std::string remedy = {}) {
  return {Error::Code::Cancelled, std::move(where), std::move(what), std::move(remedy)};
}

}  // namespace evenkeel
