// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace evenkeel {

/// A descriptor that is closed when it goes.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { close(); }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool isOpen() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

// The kernel's calls (Linux 5.3), because glibc before 2.36 lacks them and 2.36 hides them from C++.
[[nodiscard]] int openPidfd(int pid);
void signalPidfd(int pidfd, int signal);

/// Field 22 of /proc/PID/stat, nothing if there is no such process or it is a zombie.
[[nodiscard]] std::optional<std::int64_t> startTimeOf(int pid);

/// A pidfd of the process with this pid and start time, owned by our user; nothing if it is gone. A descriptor cannot come to
/// mean another process, so that what is signalled through it is what was meant.
[[nodiscard]] std::optional<Fd> openProcess(int pid, std::int64_t startTime);

/// The variable by which a run's processes, and whatever they start, are told from all others.
inline constexpr const char* kRunDirectoryVariable = "EVENKEEL_RUN_DIRECTORY";

struct Found {
  int pid = 0;
  Fd handle;
};
/// Our user's processes that carry this run directory in their environment. O(processes of the machine).
[[nodiscard]] std::vector<Found> processesOf(const std::filesystem::path& runDirectory);

/// TERM to each, KILL to those that are left after `grace`; returns the pids that even survive that for two seconds.
[[nodiscard]] std::vector<int> endProcesses(std::vector<Found> processes, std::chrono::milliseconds grace);

struct Spawn {
  std::vector<std::string> argv;                   // argv[0] is a path
  std::map<std::string, std::string> environment;  // whole
  std::filesystem::path log;                       // stderr is appended there
  bool hasInput = false;                           // its stdin is a pipe that we hold, else /dev/null
};
struct Spawned {
  int pid = 0;
  Fd output;  // its stdout, non-blocking
  Fd input;   // open if hasInput
};
/// Starts a program in a process group of its own that gets SIGKILL when we die. Fails if the program cannot be run. The
/// calling thread must be the one that lives as long as the child.
[[nodiscard]] Result<Spawned> spawn(const Spawn& spawn);

/// Our environment as a map.
[[nodiscard]] std::map<std::string, std::string> ownEnvironment();

/// "killed by SIGKILL", "exit status 3"; status as of waitpid().
[[nodiscard]] std::string endingText(int status);

}  // namespace evenkeel
