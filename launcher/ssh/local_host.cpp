// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/local_host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>

#include "launcher/ssh/waits.h"

namespace evenkeel {
namespace {

constexpr std::size_t kChunk = std::size_t{64} << 10U;

struct Pipe {
  OwnedFd read, write;
};

Result<Pipe> makePipe(const std::string& where) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed(where, fmt::format("cannot make a pipe: {}", ::strerror(errno)));
  return Pipe{OwnedFd(ends[0]), OwnedFd(ends[1])};
}

void setNonBlocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

/// Keeps SIGPIPE from this thread: a child that closes its stdin is no reason for us to die.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutSigpipe() {
    const timespec none{};
    if (::sigismember(&before_, SIGPIPE) == 0) {
      while (::sigtimedwait(&pipe_, nullptr, &none) == SIGPIPE) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

/// A child that is not reaped yet; killed with its group and reaped when it goes.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid), exit_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  ~Child() {
    if (pid_ > 0) {
      ::kill(-pid_, SIGKILL);
      [[maybe_unused]] const Ending ending = reap();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  [[nodiscard]] int exitFd() const { return exit_.get(); }
  Ending reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (WIFSIGNALED(status)) return {.exitStatus = 128 + WTERMSIG(status), .signal = signalName(WTERMSIG(status))};
    return {.exitStatus = WEXITSTATUS(status)};
  }

 private:
  pid_t pid_;
  OwnedFd exit_;
};

/// The pid, or the errno that kept the program from being run.
std::pair<pid_t, int> spawn(const std::vector<std::string>& argv, int in, int out, int err) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, in, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, 1);
  ::posix_spawn_file_actions_adddup2(&actions, err, 2);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int failure = ::posix_spawnp(&pid, argv.front().c_str(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return {pid, failure};
}

/// Hands over what can be read now; closes the descriptor at its end.
bool drain(OwnedFd& fd, const std::function<void(std::string_view)>& to) {
  std::array<char, kChunk> chunk;
  const ssize_t count = ::read(fd.get(), chunk.data(), chunk.size());
  if (count > 0) {
    if (to) to({chunk.data(), static_cast<std::size_t>(count)});
    return true;
  }
  if (count == 0 || (errno != EAGAIN && errno != EINTR)) fd.close();
  return false;
}

}  // namespace

std::string signalName(int signal) {
  const char* abbreviation = ::sigabbrev_np(signal);
  return abbreviation != nullptr ? std::string("SIG") + abbreviation : fmt::format("signal {}", signal);
}

Result<Ending> LocalHost::execute(const Command& command, std::stop_token stop) {
  assert(!command.argv.empty());
  auto in = makePipe(name_), out = makePipe(name_), err = makePipe(name_);
  for (auto* pipe : {&in, &out, &err}) {
    if (!*pipe) return pipe->error();
  }
  const auto [pid, failure] = spawn(command.argv, in->read.get(), out->write.get(), err->write.get());
  if (failure != 0) return failed(name_, fmt::format("cannot run {}: {}", command.argv.front(), ::strerror(failure)));
  Child child(pid);
  in->read.close();
  out->write.close();
  err->write.close();
  for (const int fd : {in->write.get(), out->read.get(), err->read.get()}) setNonBlocking(fd);

  const WithoutSigpipe guard;
  const StopEvent stopEvent(std::move(stop));
  TimeLimits limits(command.deadline, command.silence);
  std::string pending;  // of the input, not written yet
  while (true) {
    if (stopEvent.stopped()) return cancelled(name_, command.argv.front() + " was stopped");
    if (const auto ranOut = limits.expired()) return cancelled(name_, command.argv.front() + " " + *ranOut);
    if (pending.empty() && in->write.get() >= 0) {
      if (command.input) pending = command.input(kChunk);
      if (pending.empty()) in->write.close();
    }
    std::array<pollfd, 5> fds{{{child.exitFd(), POLLIN, 0},
                               {stopEvent.fd(), POLLIN, 0},
                               {out->read.get(), POLLIN, 0},
                               {err->read.get(), POLLIN, 0},
                               {in->write.get(), POLLOUT, 0}}};
    if (::poll(fds.data(), fds.size(), limits.pollTimeout()) < 0) continue;  // EINTR: look at everything again
    if (fds[2].revents != 0 && drain(out->read, command.onOutput)) limits.moved();
    if (fds[3].revents != 0 && drain(err->read, command.onErrorOutput)) limits.moved();
    if (fds[4].revents != 0) {
      const ssize_t written = ::write(in->write.get(), pending.data(), pending.size());
      if (written > 0) {
        pending.erase(0, static_cast<std::size_t>(written));
        limits.moved();
      } else if (errno != EAGAIN && errno != EINTR) {
        pending.clear();
        in->write.close();  // it does not want more; its ending says whether that was right
      }
    }
    if (fds[0].revents != 0) break;
  }
  // The program is gone; what it left in the pipes is ours, what its children may still write is not.
  while (out->read.get() >= 0 && drain(out->read, command.onOutput)) {
  }
  while (err->read.get() >= 0 && drain(err->read, command.onErrorOutput)) {
  }
  return child.reap();
}

}  // namespace evenkeel
