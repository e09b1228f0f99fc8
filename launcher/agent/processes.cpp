// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/agent/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "core/base/words.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAfterKill{2000};

std::string contentOf(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  return std::move(content).str();
}

bool isOurs(int pid) {
  struct stat status {};
  return ::stat(fmt::format("/proc/{}", pid).c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

bool carries(int pid, std::string_view assignment) {
  const std::string environment = contentOf(fmt::format("/proc/{}/environ", pid));
  std::string_view rest = environment;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    if (rest.substr(0, end) == assignment) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

/// Drops those that have ended; waits for the last of them until `until`.
void awaitEnd(std::vector<Found>& processes, Clock::time_point until) {
  while (!processes.empty()) {
    std::vector<pollfd> fds;
    for (const Found& process : processes) fds.push_back({process.handle.get(), POLLIN, 0});
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(0, rest))) < 0) continue;
    for (std::size_t i = fds.size(); i-- > 0;) {
      if (fds[i].revents != 0) processes.erase(processes.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (rest <= 0) return;
  }
}

/// In the child, between fork and exec: only calls that are safe there. Reports errno through `report` and ends on failure.
[[noreturn]] void becomeProgram(const std::vector<char*>& argv, const std::vector<char*>& environment, int in, int out, int err,
                                int report, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  struct sigaction byDefault {};
  byDefault.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &byDefault, nullptr);
  if (::dup2(in, 0) >= 0 && ::dup2(out, 1) >= 0 && ::dup2(err, 2) >= 0) ::execve(argv[0], argv.data(), environment.data());
  const int failure = errno;
  [[maybe_unused]] const ssize_t written = ::write(report, &failure, sizeof failure);
  ::_exit(127);
}

std::pair<Fd, Fd> makePipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  return {Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

void Fd::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

int openPidfd(int pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

void signalPidfd(int pidfd, int signal) { ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0); }

std::optional<std::int64_t> startTimeOf(int pid) {
  const std::string stat = contentOf(fmt::format("/proc/{}/stat", pid));
  const std::size_t afterName = stat.rfind(')');  // the name may hold anything, also parentheses and spaces
  if (afterName == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(afterName + 1));
  std::string field;
  for (int number = 3; fields >> field; ++number) {
    if (number == 3 && (field == "Z" || field == "X")) return std::nullopt;
    if (number == 22) return parseNumber<std::int64_t>(field);
  }
  return std::nullopt;
}

std::optional<Fd> openProcess(int pid, std::int64_t startTime) {
  Fd handle(openPidfd(pid));
  if (!handle.isOpen() || startTimeOf(pid) != startTime || !isOurs(pid)) return std::nullopt;
  return handle;
}

std::vector<Found> processesOf(const fs::path& runDirectory) {
  const std::string assignment = fmt::format("{}={}", kRunDirectoryVariable, runDirectory.string());
  std::vector<Found> found;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", failure)) {
    const auto pid = parseNumber<int>(entry.path().filename().string());
    if (!pid || *pid == ::getpid() || !isOurs(*pid)) continue;
    Fd handle(openPidfd(*pid));  // before the look, so that it means what was looked at
    if (handle.isOpen() && carries(*pid, assignment) && startTimeOf(*pid)) found.push_back({*pid, std::move(handle)});
  }
  return found;
}

std::vector<int> endProcesses(std::vector<Found> processes, std::chrono::milliseconds grace) {
  for (const Found& process : processes) signalPidfd(process.handle.get(), SIGTERM);
  awaitEnd(processes, Clock::now() + grace);
  for (const Found& process : processes) signalPidfd(process.handle.get(), SIGKILL);
  awaitEnd(processes, Clock::now() + kAfterKill);
  std::vector<int> left;
  for (const Found& process : processes) left.push_back(process.pid);
  return left;
}

Result<Spawned> spawn(const Spawn& spawn) {
  const std::string& program = spawn.argv.front();
  const auto systemError = [&](const char* step) {
    return failed(program, fmt::format("cannot be started ({}: {})", step, ::strerror(errno)));
  };
  auto [outRead, outWrite] = makePipe();
  auto [reportRead, reportWrite] = makePipe();
  std::pair<Fd, Fd> input;
  if (spawn.hasInput) {
    input = makePipe();
  } else {
    input.first = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  const Fd log(::open(spawn.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log.isOpen()) return failed(spawn.log.string(), fmt::format("cannot be opened: {}", ::strerror(errno)));
  if (!outRead.isOpen() || !reportRead.isOpen() || !input.first.isOpen()) return systemError("pipe");

  std::vector<std::string> assignments;
  for (const auto& [name, value] : spawn.environment) assignments.push_back(name + "=" + value);
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
    list.push_back(nullptr);
    return list;
  };
  const auto argv = pointers(spawn.argv), environment = pointers(assignments);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return systemError("fork");
  if (pid == 0) becomeProgram(argv, environment, input.first.get(), outWrite.get(), log.get(), reportWrite.get(), parent);
  ::setpgid(pid, pid);  // also here, so that the group exists whoever runs first
  reportWrite.close();
  int failure = 0;
  ssize_t count = 0;
  while ((count = ::read(reportRead.get(), &failure, sizeof failure)) < 0 && errno == EINTR) {
  }
  if (count > 0) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return failed(program, fmt::format("cannot be run: {}", ::strerror(failure)));
  }
  ::fcntl(outRead.get(), F_SETFL, O_NONBLOCK);
  return Spawned{pid, std::move(outRead), std::move(input.second)};
}

std::map<std::string, std::string> ownEnvironment() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) environment[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  return environment;
}

std::string endingText(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("exit status {}", WEXITSTATUS(status));
  const char* abbreviation = ::sigabbrev_np(WTERMSIG(status));
  return abbreviation != nullptr ? fmt::format("killed by SIG{}", abbreviation)
                                 : fmt::format("killed by signal {}", WTERMSIG(status));
}

}  // namespace evenkeel
