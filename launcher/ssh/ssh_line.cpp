// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/ssh_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

namespace evenkeel {
namespace {

constexpr std::size_t kChunk = std::size_t{128} << 10U;
constexpr std::size_t kMostComplaint = 4096;

Result<std::pair<OwnedFd, OwnedFd>> socketPair(const std::string& where) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    return failed(where, fmt::format("cannot make a pair of sockets: {}", ::strerror(errno)));
  return std::pair(OwnedFd(ends[0]), OwnedFd(ends[1]));
}

/// A running ProxyCommand.
class ProxyProgram {
 public:
  ProxyProgram(pid_t pid, OwnedFd complaints) : pid_(pid), complaints_(std::move(complaints)) {}
  ~ProxyProgram() {
    ::kill(-pid_, SIGKILL);  // a group of its own, and not reaped yet: nobody else's
    ::waitpid(pid_, nullptr, 0);
  }
  ProxyProgram(const ProxyProgram&) = delete;
  ProxyProgram& operator=(const ProxyProgram&) = delete;

  std::string complaint() {
    std::array<char, kMostComplaint> chunk{};
    ssize_t count = 0;
    while ((count = ::read(complaints_.get(), chunk.data(), chunk.size())) > 0) {
      text_.append(chunk.data(), static_cast<std::size_t>(count));
      if (text_.size() > kMostComplaint) text_.erase(0, text_.size() - kMostComplaint);
    }
    while (!text_.empty() && (text_.back() == '\n' || text_.back() == '\r')) text_.pop_back();
    return text_.substr(text_.find_last_of('\n') + 1);
  }

 private:
  pid_t pid_;
  OwnedFd complaints_;
  std::string text_;
};

/// Carries bytes between a socket and a channel of a jump host's session until either ends.
class JumpPump {
 public:
  JumpPump(SshSession session, ssh_channel channel, OwnedFd near)
      : session_(std::move(session)), channel_(channel), near_(std::move(near)), stop_(source_.get_token()) {
    callbacks_.userdata = this;
    callbacks_.channel_data_function = [](ssh_session, ssh_channel, void* data, std::uint32_t length, int isError, void* user) {
      if (isError == 0) static_cast<JumpPump*>(user)->toNear_.append(static_cast<const char*>(data), length);
      return static_cast<int>(length);
    };
    callbacks_.channel_close_function = [](ssh_session, ssh_channel, void* user) {
      static_cast<JumpPump*>(user)->isClosed_ = true;
    };
    callbacks_.channel_eof_function = callbacks_.channel_close_function;
    ssh_callbacks_init(&callbacks_);
    ::ssh_set_channel_callbacks(channel_, &callbacks_);
    thread_ = std::jthread([this] { carry(); });
  }
  ~JumpPump() {
    source_.request_stop();
    thread_.join();
    ::ssh_remove_channel_callbacks(channel_, &callbacks_);
    ::ssh_channel_free(channel_);
  }
  JumpPump(const JumpPump&) = delete;
  JumpPump& operator=(const JumpPump&) = delete;

 private:
  static int wake(socket_t, int, void*) { return 0; }

  void carry() {
    const std::unique_ptr<ssh_event_struct, decltype(&::ssh_event_free)> event(::ssh_event_new(), &::ssh_event_free);
    ::ssh_event_add_session(event.get(), session_.get());
    ::ssh_event_add_fd(event.get(), stop_.fd(), POLLIN, &wake, nullptr);
    short watched = 0;
    while (!stop_.stopped() && move()) {
      const short wanted = static_cast<short>((toFar_.empty() ? POLLIN : 0) | (toNear_.empty() ? 0 : POLLOUT));
      if (wanted != watched) {
        if (watched != 0) ::ssh_event_remove_fd(event.get(), near_.get());
        if (wanted != 0) ::ssh_event_add_fd(event.get(), near_.get(), wanted, &wake, nullptr);
        watched = wanted;
      }
      const bool canGoOn = !toFar_.empty() && ::ssh_channel_window_size(channel_) > 0;
      if (::ssh_event_dopoll(event.get(), canGoOn ? 0 : -1) == SSH_ERROR || ::ssh_is_connected(session_.get()) == 0) break;
    }
    if (watched != 0) ::ssh_event_remove_fd(event.get(), near_.get());
    ::ssh_event_remove_fd(event.get(), stop_.fd());
    ::ssh_event_remove_session(event.get(), session_.get());
    near_.close();  // whoever reads at the other end sees the end
  }

  /// What can move now; false if either side has ended and nothing is left for the near one.
  bool move() {
    while (!toNear_.empty()) {
      const ssize_t sent = ::send(near_.get(), toNear_.data(), toNear_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno != EAGAIN) return false;
      if (sent <= 0) break;
      toNear_.erase(0, static_cast<std::size_t>(sent));
    }
    if (isClosed_) return !toNear_.empty();
    if (toFar_.empty()) {
      std::array<char, kChunk> chunk;
      const ssize_t count = ::recv(near_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (count > 0) toFar_.assign(chunk.data(), static_cast<std::size_t>(count));
    }
    const std::uint32_t window = ::ssh_channel_window_size(channel_);
    if (!toFar_.empty() && window > 0) {
      const int written =
          ::ssh_channel_write(channel_, toFar_.data(), static_cast<std::uint32_t>(std::min<std::size_t>(toFar_.size(), window)));
      if (written == SSH_ERROR) return false;
      if (written > 0) toFar_.erase(0, static_cast<std::size_t>(written));
    }
    return true;
  }

  SshSession session_;
  ssh_channel channel_;
  OwnedFd near_;
  std::stop_source source_;
  StopEvent stop_;
  ssh_channel_callbacks_struct callbacks_{};
  std::string toNear_, toFar_;
  bool isClosed_ = false;
  std::jthread thread_;
};

}  // namespace

Result<SshLine> lineThroughCommand(const std::string& where, const std::string& command) {
  auto ends = socketPair(where);
  if (!ends) return std::move(ends).error();
  auto& [ours, theirs] = *ends;
  ::fcntl(theirs.get(), F_SETFL, ::fcntl(theirs.get(), F_GETFL) & ~O_NONBLOCK);  // programs expect an ordinary stdin
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    return failed(where, fmt::format("cannot make a pipe: {}", ::strerror(errno)));
  OwnedFd complaints(pipe[0]);
  const OwnedFd complain(pipe[1]);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, complain.get(), 2);
  std::string shell = "sh", option = "-c", line = "SSH_ASKPASS_REQUIRE=never; export SSH_ASKPASS_REQUIRE; " + command;
  std::array<char*, 4> argv{shell.data(), option.data(), line.data(), nullptr};
  pid_t pid = -1;
  const int spawned = ::posix_spawn(&pid, "/bin/sh", &actions, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (spawned != 0) return failed(where, fmt::format("the proxy command cannot be started: {}", ::strerror(spawned)));
  auto program = std::make_shared<ProxyProgram>(pid, std::move(complaints));
  return SshLine{std::move(ours), program, [program = program.get()] { return program->complaint(); }};
}

Result<SshLine> lineThroughJump(const std::string& where, SshSession jump, const std::string& jumpName, const std::string& host,
                                int port, const TimeLimits& limits, const StopEvent& stop) {
  ssh_channel channel = ::ssh_channel_new(jump.get());
  if (channel == nullptr) return unreachable(where, fmt::format("jump host {}: the connection is broken", jumpName));
  std::unique_ptr<ssh_channel_struct, decltype(&::ssh_channel_free)> owned(channel, &::ssh_channel_free);
  while (true) {
    const int outcome = ::ssh_channel_open_forward(channel, host.c_str(), port, "localhost", 0);
    if (outcome == SSH_OK) break;
    if (outcome != SSH_AGAIN)
      return unreachable(
          where, fmt::format("jump host {} cannot connect to {} port {}: {}", jumpName, host, port, ::ssh_get_error(jump.get())),
          "are host and port right, as the jump host sees them?");
    std::array<pollfd, 2> fds{{{::ssh_get_fd(jump.get()), POLLIN, 0}, {stop.fd(), POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), limits.pollTimeout());
    if (stop.stopped()) return cancelled(where, "logging in was stopped");
    if (ready == 0)
      return unreachable(where, fmt::format("jump host {} has found no way to {} port {} in time", jumpName, host, port));
  }
  auto ends = socketPair(where);
  if (!ends) return std::move(ends).error();
  SshLine line{std::move(ends->first), nullptr, {}};
  line.owner = std::make_shared<JumpPump>(std::move(jump), owned.release(), std::move(ends->second));
  return line;
}

}  // namespace evenkeel
