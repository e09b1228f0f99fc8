// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace evenkeel::gui {

/// An X server without a screen and a window manager in it, of this process alone; both go with it.
class RealDisplay {
 public:
  /// Empty if there can be one here.
  [[nodiscard]] static std::string reasonToSkip() {
    for (const char* program : {"/usr/bin/Xvfb", "/usr/bin/xdotool", "/usr/bin/openbox"}) {
      if (!std::filesystem::exists(program)) return std::string(program) + " is missing";
    }
    return {};
  }

  /// Sets DISPLAY. Empty number if the server did not start.
  RealDisplay() {
    int ends[2] = {-1, -1};
    if (::pipe(ends) != 0) return;
    server_ = start({"/usr/bin/Xvfb", "-displayfd", std::to_string(ends[1]), "-screen", "0", "1600x1000x24", "-nolisten", "tcp"});
    ::close(ends[1]);
    char buffer[16] = {};
    for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer - 1)) > 0 && number_.find('\n') == std::string::npos;)
      number_.append(buffer, static_cast<std::size_t>(got));
    ::close(ends[0]);
    while (!number_.empty() && number_.back() == '\n') number_.pop_back();
    if (number_.empty()) return;
    ::setenv("DISPLAY", (":" + number_).c_str(), 1);
    manager_ = start({"/usr/bin/openbox", "--sm-disable"});
    // A window that is shown while the manager starts may be missed by it for ever. It has started once it says how many desktops
    // there are; asking is all that X offers, and each question takes a process.
    for (int ask = 0; ask < 1000 && !managerAnswers(); ++ask) {
    }
  }
  ~RealDisplay() {
    for (const pid_t pid : {manager_, server_}) {
      if (pid <= 0) continue;
      ::kill(pid, SIGTERM);
      ::waitpid(pid, nullptr, 0);
    }
  }
  RealDisplay(const RealDisplay&) = delete;
  RealDisplay& operator=(const RealDisplay&) = delete;
  [[nodiscard]] const std::string& number() const { return number_; }

 private:
  static bool managerAnswers() {
    const pid_t question = start({"/usr/bin/xdotool", "get_num_desktops"});
    int status = -1;
    return question > 0 && ::waitpid(question, &status, 0) == question && status == 0;
  }
  static pid_t start(const std::vector<std::string>& argv) {
    std::vector<char*> arguments;
    for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    for (const int fd : {1, 2}) ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
    pid_t pid = -1;
    const int failure = ::posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    return failure == 0 ? pid : -1;
  }
  pid_t server_ = -1, manager_ = -1;
  std::string number_;
};

}  // namespace evenkeel::gui
