// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/ssh_host.h"

#include <fmt/format.h>
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <poll.h>

#include <algorithm>
#include <cassert>

#include "launcher/ssh/quoting.h"
#include "launcher/ssh/tcp.h"

namespace evenkeel {
namespace {

constexpr std::string_view kOutputBegins = "evenkeel: output begins";
constexpr std::size_t kMostPreamble = std::size_t{1} << 20U;
constexpr std::size_t kChunk = std::size_t{256} << 10U;

/// libssh's event loop over one session, woken by a stop as well.
class Loop {
 public:
  explicit Loop(ssh_session session) : session_(session), event_(::ssh_event_new()) { ::ssh_event_add_session(event_, session_); }
  ~Loop() {
    ::ssh_event_remove_session(event_, session_);
    ::ssh_event_free(event_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  void watch(int fd) {
    ::ssh_event_add_fd(
        event_, fd, POLLIN, [](socket_t, int, void*) { return 0; }, nullptr);
  }
  void unwatch(int fd) { ::ssh_event_remove_fd(event_, fd); }
  /// False if the connection is gone.
  bool turn(int timeout) { return isConnected() && ::ssh_event_dopoll(event_, timeout) != SSH_ERROR && isConnected(); }

 private:
  /// After a failed write libssh closes its socket and calls the session connected all the same.
  [[nodiscard]] bool isConnected() const { return ::ssh_is_connected(session_) != 0 && ::ssh_get_fd(session_) >= 0; }

  ssh_session session_;
  ssh_event event_;
};

/// What the callbacks of one channel have told so far.
struct Progress {
  const Command* command = nullptr;
  TimeLimits* limits = nullptr;
  bool isPreambleOver = false;
  std::string preamble;  // what the login shell printed before the command's own output
  std::optional<Ending> ending;
  bool isClosed = false;

  void takeOutput(std::string_view piece) {
    if (!isPreambleOver) {
      preamble += piece;
      const std::size_t mark = preamble.find(std::string(kOutputBegins) + "\n");
      if (mark == std::string::npos) {
        if (preamble.size() > kMostPreamble) preamble.erase(0, preamble.size() - kOutputBegins.size());
        return;
      }
      isPreambleOver = true;
      const std::string own = preamble.substr(mark + kOutputBegins.size() + 1);
      preamble.clear();
      if (!own.empty() && command->onOutput) command->onOutput(own);
      return;
    }
    if (command->onOutput) command->onOutput(piece);
  }
};

int onData(ssh_session, ssh_channel, void* data, std::uint32_t length, int isError, void* user) {
  auto& progress = *static_cast<Progress*>(user);
  progress.limits->moved();
  const std::string_view piece(static_cast<const char*>(data), length);
  if (isError == 0) {
    progress.takeOutput(piece);
  } else if (progress.command->onErrorOutput) {
    progress.command->onErrorOutput(piece);
  }
  return static_cast<int>(length);
}
void onExitStatus(ssh_session, ssh_channel, int status, void* user) {
  static_cast<Progress*>(user)->ending = Ending{.exitStatus = status};
}
void onExitSignal(ssh_session, ssh_channel, const char* signal, int, const char*, const char*, void* user) {
  static_cast<Progress*>(user)->ending = Ending{.exitStatus = 255, .signal = std::string("SIG") + signal};
}
void onClose(ssh_session, ssh_channel, void* user) { static_cast<Progress*>(user)->isClosed = true; }

class SshHost final : public Host {
 public:
  SshHost(std::string name, SshSession session) : name_(std::move(name)), session_(std::move(session)), loop_(session_.get()) {}
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::string address() const override { return peerAddressOf(::ssh_get_fd(session_.get())); }
  [[nodiscard]] std::string addressOfThisEnd() const override { return ownAddressOf(::ssh_get_fd(session_.get())); }
  [[nodiscard]] Result<Ending> execute(const Command& command, std::stop_token stop) override;

 private:
  /// Repeats a non-blocking call until it is through.
  template <class Call>
  Result<void> drive(Call call, std::string_view what, const TimeLimits& limits, const StopEvent& stop);
  Result<Ending> converse(ssh_channel channel, const Command& command, Progress& progress, TimeLimits& limits,
                          const StopEvent& stop);
  [[nodiscard]] Error connectionLost() const { return unreachable(name_, "the connection is broken"); }

  std::string name_;
  SshSession session_;
  Loop loop_;
};

template <class Call>
Result<void> SshHost::drive(Call call, std::string_view what, const TimeLimits& limits, const StopEvent& stop) {
  while (true) {
    const int outcome = call();
    if (outcome == SSH_OK) return {};
    if (outcome != SSH_AGAIN) {
      if (::ssh_is_connected(session_.get()) == 0) return connectionLost();
      return unreachable(name_, fmt::format("{}: {}", what, ::ssh_get_error(session_.get())));
    }
    if (stop.stopped()) return cancelled(name_, fmt::format("{} was stopped", what));
    if (const auto ranOut = limits.expired()) return unreachable(name_, fmt::format("{} {}", what, *ranOut));
    if (!loop_.turn(limits.pollTimeout())) return connectionLost();
  }
}

Result<Ending> SshHost::execute(const Command& command, std::stop_token stopToken) {
  assert(!command.argv.empty());
  for (const std::string& argument : command.argv) {
    if (argument.find('\0') != std::string::npos) return invalidInput(name_, "an argument holds a zero byte");
  }
  const std::string line = fmt::format("echo {}; exec {}", shellWord(kOutputBegins), shellLine(command.argv));
  TimeLimits limits(command.deadline, command.silence);
  const StopEvent stop(std::move(stopToken));
  // Declared before the channel, which calls back into them until it is freed.
  Progress progress{.command = &command, .limits = &limits};
  ssh_channel_callbacks_struct callbacks{};
  callbacks.userdata = &progress;
  callbacks.channel_data_function = &onData;
  callbacks.channel_exit_status_function = &onExitStatus;
  callbacks.channel_exit_signal_function = &onExitSignal;
  callbacks.channel_close_function = &onClose;
  ssh_callbacks_init(&callbacks);
  const std::unique_ptr<ssh_channel_struct, decltype(&::ssh_channel_free)> channel(::ssh_channel_new(session_.get()),
                                                                                   &::ssh_channel_free);
  if (!channel) return connectionLost();

  loop_.watch(stop.fd());
  auto ending = [&]() -> Result<Ending> {
    auto opened = drive([&] { return ::ssh_channel_open_session(channel.get()); }, "opening a channel", limits, stop);
    if (!opened) return opened.error();
    ::ssh_set_channel_callbacks(channel.get(), &callbacks);
    auto requested = drive([&] { return ::ssh_channel_request_exec(channel.get(), line.c_str()); },
                           "running " + command.argv.front(), limits, stop);
    if (!requested) return requested.error();
    auto conversation = converse(channel.get(), command, progress, limits, stop);
    ::ssh_remove_channel_callbacks(channel.get(), &callbacks);
    return conversation;
  }();
  loop_.unwatch(stop.fd());
  return ending;
}

Result<Ending> SshHost::converse(ssh_channel channel, const Command& command, Progress& progress, TimeLimits& limits,
                                 const StopEvent& stop) {
  std::string pending;  // of the input, not handed over yet
  bool isInputOver = false;
  while (!progress.isClosed) {
    if (stop.stopped()) return cancelled(name_, command.argv.front() + " was stopped");
    if (const auto ranOut = limits.expired()) return cancelled(name_, command.argv.front() + " " + *ranOut);
    const std::uint32_t window = ::ssh_channel_window_size(channel);
    const bool canWrite = !isInputOver && !progress.ending && window > 0;
    if (canWrite) {
      if (pending.empty() && command.input) pending = command.input(kChunk);
      if (pending.empty()) {
        ::ssh_channel_send_eof(channel);
        isInputOver = true;
      } else {
        const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(pending.size(), window));
        const int written = ::ssh_channel_write(channel, pending.data(), most);
        if (written == SSH_ERROR) return connectionLost();
        if (written > 0) {
          pending.erase(0, static_cast<std::size_t>(written));
          limits.moved();
        }
      }
    }
    const bool writesOn = !isInputOver && !progress.ending && ::ssh_channel_window_size(channel) > 0;
    if (!loop_.turn(writesOn ? 0 : limits.pollTimeout())) {
      if (progress.isClosed) break;
      return connectionLost();
    }
  }
  if (!progress.ending) return connectionLost();
  if (!progress.isPreambleOver) {
    std::string said = progress.preamble.substr(0, progress.preamble.find('\n'));
    return failed(name_,
                  fmt::format("its login shell ended ({}) before it ran {}{}", progress.ending->text(), command.argv.front(),
                              said.empty() ? "" : "; it said: " + said.substr(0, 200)),
                  "log in there by hand: does its shell start, and does its .bashrc or .profile leave?");
  }
  return *progress.ending;
}

}  // namespace

Result<std::unique_ptr<Host>> connectSsh(const std::string& name, const SshAddress& address, std::chrono::milliseconds deadline,
                                         std::stop_token stop, LoginHelp* help) {
  const TimeLimits limits(deadline, {});
  const StopEvent stopEvent(std::move(stop));
  auto session = logIn(name, address, limits, stopEvent, help);
  if (!session) return std::move(session).error();
  return std::unique_ptr<Host>(std::make_unique<SshHost>(name, *std::move(session)));
}

}  // namespace evenkeel
