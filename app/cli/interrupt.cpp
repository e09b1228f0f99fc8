// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace evenkeel::cli {
namespace {

sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

InterruptWatch::InterruptWatch(std::function<void(int)> onInterrupt) {
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  wake_ = ::eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this, callback = std::move(onInterrupt)] {
    for (int count = 1;;) {
      pollfd ready[2] = {{signals_, POLLIN, 0}, {wake_, POLLIN, 0}};
      if (::poll(ready, 2, -1) < 0) continue;
      if (ready[1].revents != 0) return;
      signalfd_siginfo info;
      if (::read(signals_, &info, sizeof info) == sizeof info) callback(count++);
    }
  });
}

InterruptWatch::~InterruptWatch() {
  const std::uint64_t one = 1;
  if (::write(wake_, &one, sizeof one) == sizeof one) thread_.join();
  ::close(signals_);
  ::close(wake_);
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace evenkeel::cli
