// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/login_prompt.h"

#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <mutex>
#include <optional>
#include <set>

#include "app/cli/command.h"
#include "launcher/job/layout.h"

namespace evenkeel::cli {
namespace {

using Kind = LoginObstacle::Kind;
constexpr int kLook = 100;  // milliseconds between two looks whether the stop has come
constexpr std::size_t kMostTyped = 4096;

/// Keeps what is typed off the screen while it lives.
class Unseen {
 public:
  explicit Unseen(bool isShown) {
    if (isShown || ::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    isQuiet_ = ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) == 0;
  }
  ~Unseen() {
    if (!isQuiet_) return;
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
    note("\n");
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;

 private:
  termios before_{};
  bool isQuiet_ = false;
};

/// A line from the terminal; nothing at its end (Ctrl-D), or when the stop came.
std::optional<std::string> ask(const std::string& question, bool isShown, const std::stop_token& stop) {
  const Unseen unseen(isShown);  // before the question, which some answer at once
  note("{} ", question);
  std::fflush(stderr);
  std::string line;
  while (!stop.stop_requested()) {
    pollfd typed{STDIN_FILENO, POLLIN, 0};
    if (::poll(&typed, 1, kLook) <= 0) continue;
    char c = 0;
    if (::read(STDIN_FILENO, &c, 1) != 1) return std::nullopt;
    if (c == '\n') return line;
    if (line.size() < kMostTyped) line += c;
  }
  return std::nullopt;
}

class TerminalAdvisor final : public LoginAdvisor {
 public:
  std::map<std::string, std::string> secrets() override {
    const std::lock_guard lock(mutex_);
    return secrets_;
  }
  bool settle(const std::string& node, const LoginObstacle& obstacle, const std::stop_token& stop) override {
    const std::lock_guard lock(asking_);  // one question at a time, whichever thread asks
    if (obstacle.kind == Kind::ChangedHostKey) return false;
    const std::string subject =
        obstacle.secretName().empty() ? obstacle.knownHosts + "\n" + obstacle.knownHostsLine : obstacle.secretName();
    if (declined_.contains(subject)) return false;
    const bool isSettled = obstacle.kind == Kind::UnknownHostKey ? settleKey(node, obstacle, subject, stop)
                                                                 : settleSecret(node, obstacle, subject, stop);
    if (!isSettled) declined_.insert(subject);
    return isSettled;
  }

 private:
  bool settleKey(const std::string& node, const LoginObstacle& obstacle, const std::string& subject,
                 const std::stop_token& stop) {
    if (trusted_.contains(subject)) return true;
    note("{}: {} port {} has not been reached from here before. It shows this key:\n  {}\n", node, obstacle.host, obstacle.port,
         obstacle.shownKey);
    const auto answer = ask(fmt::format("Type yes to trust it and add it to {}:", obstacle.knownHosts), true, stop);
    if (!answer || *answer != "yes") return false;
    if (const auto written = trustHostKey(obstacle); !written) {
      note("error: {}\n", written.error().text());
      return false;
    }
    return trusted_.insert(subject).second;
  }
  bool settleSecret(const std::string& node, const LoginObstacle& obstacle, const std::string& subject,
                    const std::stop_token& stop) {
    {
      const std::lock_guard lock(mutex_);
      if (!obstacle.wasWrong && secrets_.contains(subject)) return true;  // another node's thread has asked meanwhile
      secrets_.erase(subject);
    }
    if (obstacle.wasWrong) note("{}: that was wrong\n", node);
    const std::string question = obstacle.kind == Kind::PassPhrase
                                     ? fmt::format("{}: pass phrase of {}:", node, obstacle.identity)
                                 : obstacle.kind == Kind::Password
                                     ? fmt::format("{}: password of {}@{}:", node, obstacle.user, obstacle.host)
                                     : fmt::format("{}: {} asks {}: {}", node, obstacle.host, obstacle.user, obstacle.question);
    auto answer = ask(question, obstacle.isShown, stop);
    if (!answer || answer->empty()) return false;
    const std::lock_guard lock(mutex_);
    secrets_[subject] = *std::move(answer);
    return true;
  }

  std::mutex asking_;  // of the terminal, and of:
  std::set<std::string> declined_, trusted_;
  std::mutex mutex_;  // of:
  std::map<std::string, std::string> secrets_;
};

}  // namespace

Connector connectorForTerminal() {
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1) return connectorAsking(std::make_shared<TerminalAdvisor>());
  return [](const SshTarget& target, const std::string& name, std::chrono::milliseconds deadline, const std::stop_token& stop) {
    return connectTo(target, name, deadline, stop);
  };
}

Result<Launcher> openLauncher() { return Launcher::open(connectorForTerminal()); }

}  // namespace evenkeel::cli
