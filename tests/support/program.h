// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {

/// What a program did: exit code (128 + signal if one killed it, 124 if the deadline did), stdout, stderr.
struct ProgramResult {
  int exitCode = -1;
  std::string out, err;
  [[nodiscard]] Json json() const {
    auto parsed = parseJson(out, "stdout");
    EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().text()) << "\nstdout: " << out << "\nstderr: " << err;
    return parsed.ok() ? *parsed : Json();
  }
};

/// A started program whose output is collected while the test goes on.
class Program {
 public:
  /// variables are added to the environment of the test.
  explicit Program(std::vector<std::string> argv, const std::map<std::string, std::string>& variables = {},
                   const std::filesystem::path& folder = {}) {
    std::array<int, 2> out{}, err{};
    if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (!variables.contains(text.substr(0, text.find('=')))) environment.push_back(text);
    }
    for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
    if (::posix_spawnp(&pid_, argv.at(0).c_str(), &actions, nullptr, pointers(argv).data(), pointers(environment).data()) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    ::close(err[1]);
    out_ = out[0];
    err_ = err[0];
  }
  ~Program() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    if (out_ >= 0) ::close(out_);
    if (err_ >= 0) ::close(err_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  [[nodiscard]] const ProgramResult& soFar() const { return result_; }

  /// Reads until `enough` holds or the program's output ends or the deadline passes; true if `enough` held.
  bool readUntil(const std::function<bool(const ProgramResult&)>& enough, std::chrono::seconds deadline = std::chrono::seconds(120)) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (!enough(result_)) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
      if (left <= 0 || (out_ < 0 && err_ < 0)) return false;
      std::array<pollfd, 2> ready{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
      if (::poll(ready.data(), 2, static_cast<int>(left)) <= 0) continue;
      if (ready[0].revents != 0) readSome(out_, result_.out);
      if (ready[1].revents != 0) readSome(err_, result_.err);
    }
    return true;
  }

  /// Reads to the end and reaps; kills the program at the deadline.
  ProgramResult finish(std::chrono::seconds deadline = std::chrono::seconds(300)) {
    if (pid_ <= 0) return result_;
    readUntil([](const ProgramResult&) { return false; }, deadline);
    const bool isLate = out_ >= 0 || err_ >= 0;
    if (isLate) ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    result_.exitCode = isLate ? 124 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result_;
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  }
  static void readSome(int& fd, std::string& text) {
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count == 0) {
      ::close(fd);
      fd = -1;
    }
  }

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  ProgramResult result_;
};

/// evenkeel-cli with its data in a folder of the test's own, so that no run of a person is seen or touched.
class Cli {
 public:
  Cli() = default;
  explicit Cli(std::map<std::string, std::string> variables) : more_(std::move(variables)) {}

  [[nodiscard]] ProgramResult run(std::vector<std::string> arguments) const { return Program(command(std::move(arguments)), variables(), home_.path()).finish(); }
  [[nodiscard]] std::vector<std::string> command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), std::string(EVENKEEL_BIN_DIR) + "/evenkeel-cli");
    return arguments;
  }
  [[nodiscard]] std::map<std::string, std::string> variables() const {
    std::map<std::string, std::string> all = more_;
    all["XDG_DATA_HOME"] = (home_.path() / "data").string();
    all["XDG_CACHE_HOME"] = (home_.path() / "cache").string();
    return all;
  }
  [[nodiscard]] const TemporaryDirectory& folder() const { return home_; }

 private:
  TemporaryDirectory home_;
  std::map<std::string, std::string> more_;
};

}  // namespace evenkeel
