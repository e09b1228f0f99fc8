// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/waits.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace evenkeel {

void OwnedFd::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

StopEvent::StopEvent(std::stop_token stop) : stop_(std::move(stop)), fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  callback_.emplace(stop_, Signal{fd_.get()});
}

void StopEvent::Signal::operator()() const {
  const std::uint64_t one = 1;
  // can only fail when the counter is full, and then the descriptor is readable already
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
}

TimeLimits::TimeLimits(std::optional<std::chrono::milliseconds> deadline, std::optional<std::chrono::milliseconds> silence)
    : deadline_(deadline), silence_(silence), start_(Clock::now()), lastMove_(start_) {}

int TimeLimits::pollTimeout() const {
  const auto now = Clock::now();
  std::optional<Clock::duration> rest;
  if (deadline_) rest = start_ + *deadline_ - now;
  if (silence_) rest = rest ? std::min<Clock::duration>(*rest, lastMove_ + *silence_ - now) : lastMove_ + *silence_ - now;
  if (!rest) return -1;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(*rest).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 3'600'000));
}

std::optional<std::string> TimeLimits::expired() const {
  const auto now = Clock::now();
  const auto seconds = [](std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); };
  if (deadline_ && now >= start_ + *deadline_) return fmt::format("has not ended within {:g} s", seconds(*deadline_));
  if (silence_ && now >= lastMove_ + *silence_) return fmt::format("has been silent for {:g} s", seconds(*silence_));
  return std::nullopt;
}

}  // namespace evenkeel
