// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/agent/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

namespace evenkeel {
namespace {

constexpr std::chrono::milliseconds kTermToKill{5000};
constexpr std::chrono::milliseconds kGraceForCulprit{1000};
constexpr std::chrono::milliseconds kGraceForOurs{500};  // until a signal that was sent to all of us has come to us too
constexpr std::chrono::milliseconds kMostStopped{10'000};  // that a rank may stand still by SIGSTOP: its peers wait for it
constexpr std::size_t kReadChunk = std::size_t{64} << 10U;
constexpr std::size_t kMostLine = std::size_t{1} << 20U;
constexpr int kMostChunksAfterEnd = 1024;  // 64 MiB: a grandchild that writes forever must not hold us

/// The last line of a rank's log, for a reason; empty if there is none.
std::string lastLineOf(const std::filesystem::path& log) {
  std::ifstream stream(log, std::ios::binary | std::ios::ate);
  if (!stream) return {};
  const std::streamoff size = stream.tellg();
  const std::streamoff start = std::max<std::streamoff>(0, size - 4096);
  stream.seekg(start);
  std::string tail(static_cast<std::size_t>(size - start), '\0');
  stream.read(tail.data(), size - start);
  const std::size_t last = tail.find_last_not_of(" \r\n");
  if (last == std::string::npos) return {};
  tail.resize(last + 1);
  const std::size_t newline = tail.rfind('\n');
  return newline == std::string::npos ? tail : tail.substr(newline + 1);
}

std::string textOf(const Json& event, std::string_view key, std::string otherwise) {
  const auto field = event.find(key);
  return field != event.end() && field->is_string() ? field->get<std::string>() : std::move(otherwise);
}

std::int64_t integerOf(const Json& event, std::string_view key, std::int64_t otherwise) {
  const auto field = event.find(key);
  return field != event.end() && field->is_number_integer() ? field->get<std::int64_t>() : otherwise;
}

Fd watchSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

Supervisor::Supervisor(std::filesystem::path directory, NodeJob job, Json run, Journal& journal)
    : directory_(std::move(directory)), job_(std::move(job)), run_(std::move(run)), journal_(journal), signals_(watchSignals()) {}

Result<int> Supervisor::start(std::chrono::milliseconds deadline) {
  Json started{{"node", job_.node}, {"run_id", job_.runId}, {"ranks", Json::array()}};
  for (const NodeJob::Rank& rank : job_.ranks) started["ranks"].push_back({{"rank", rank.rank}, {"device", rank.device}});
  started["run"] = run_;
  journal_.append(-1, "started", started);
  const auto giveUp = [&](const Error& error) -> Result<int> {
    if (!hasFailed_) {
      journal_.append(-1, "failed", {{"node", job_.node}, {"reason", error.text()}, {"last_step", 0}, {"cause", "own"}});
      hasFailed_ = true;
    }
    beginStop(Stop::AfterFailure);
    watch();
    return error;
  };
  if (job_.hostsStore) {
    if (auto store = startStore(); !store) return giveUp(store.error());
    const auto until = Clock::now() + deadline;
    while (storePort_ == 0 && stop_ == Stop::No && Clock::now() < until) turn(until);
    if (stop_ == Stop::Asked) return giveUp(failed(job_.node, "stopped while it was starting"));
    if (storePort_ == 0) {
      const std::string said = lastLineOf(directory_ / "store.log");
      return giveUp(failed(job_.node, "the rendezvous store did not start" + (said.empty() ? std::string() : ": " + said)));
    }
    job_.masterPort = storePort_;
  }
  for (const NodeJob::Rank& rank : job_.ranks) {
    if (auto worker = startWorker(rank); !worker) return giveUp(worker.error());
  }
  return storePort_;
}

Result<void> Supervisor::startStore() {
  auto environment = ownEnvironment();
  for (const auto& [name, value] : job_.environment) environment[name] = value;  // the same libraries as the workers
  environment[kRunDirectoryVariable] = directory_.string();
  auto spawned =
      spawn({.argv = {job_.worker, "--store", "--address", job_.masterAddress, "--ranks", std::to_string(job_.worldSize)},
             .environment = std::move(environment),
             .log = directory_ / "store.log",
             .hasInput = true});
  if (!spawned) return spawned.error();
  Watched store{.rank = -1, .pid = spawned->pid};
  store.output = std::move(spawned->output);
  store.input = std::move(spawned->input);
  processes_.push_back(std::move(store));
  return {};
}

/// What the agent was given is extended, never replaced; threads are kept to one a worker unless someone decided otherwise,
/// because idle OpenMP threads that spin slow all workers of a node down.
std::map<std::string, std::string> Supervisor::environmentOf(const NodeJob::Rank& rank) const {
  auto environment = ownEnvironment();
  for (const auto& [name, value] : job_.environment) environment[name] = value;
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}) environment.emplace(name, "1");
  environment.emplace("OMP_WAIT_POLICY", "PASSIVE");
  environment["MASTER_ADDR"] = job_.masterAddress;
  environment["MASTER_PORT"] = std::to_string(job_.masterPort);
  environment["RANK"] = std::to_string(rank.rank);
  environment["WORLD_SIZE"] = std::to_string(job_.worldSize);
  environment["LOCAL_RANK"] = std::to_string(rank.localRank);
  environment["LOCAL_WORLD_SIZE"] = std::to_string(job_.ranks.size());
  environment["NODE_RANK"] = std::to_string(job_.nodeRank);
  environment["EVENKEEL_TRAIN_ADDRESS"] = job_.trainAddress;
  environment[kRunDirectoryVariable] = directory_.string();
  return environment;
}

Result<void> Supervisor::startWorker(const NodeJob::Rank& rank) {
  auto spawned = spawn({.argv = {job_.worker, "--job", (directory_ / kJobFile).string()},
                        .environment = environmentOf(rank),
                        .log = directory_ / logFileOf(rank.rank)});
  if (!spawned) return spawned.error();
  Watched worker{.rank = rank.rank, .pid = spawned->pid};
  worker.output = std::move(spawned->output);
  processes_.push_back(std::move(worker));
  return {};
}

void Supervisor::watch() {
  while (workersRun()) {
    turn(nextDeadline());
    enforceDeadlines();
  }
  finish();
}

void Supervisor::turn(std::optional<Clock::time_point> until) {
  std::vector<pollfd> fds{{signals_.get(), POLLIN, 0}};
  for (const Watched& process : processes_) fds.push_back({process.output.get(), POLLIN, 0});  // -1: ignored
  int timeout = -1;
  if (until)
    timeout =
        static_cast<int>(std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count()));
  if (::poll(fds.data(), fds.size(), timeout) < 0) return;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (fds[i + 1].revents != 0) readOutput(processes_[i]);
  }
  if (fds[0].revents != 0) readSignals();
  if (journal_.broken() && stop_ == Stop::No) {
    hasFailed_ = true;
    std::int64_t lastStep = 0;
    for (const Watched& process : processes_) lastStep = std::max(lastStep, process.lastStep);
    journal_.appendLastWords(
        -1, "failed", {{"node", job_.node}, {"reason", journal_.broken()->text()}, {"last_step", lastStep}, {"cause", "own"}});
    beginStop(Stop::AfterFailure);
  }
}

void Supervisor::readSignals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo != SIGCHLD) beginStop(Stop::Asked);
  }
  do {  // several deaths may share one SIGCHLD
    looksAgain_ = false;
    reap();
  } while (looksAgain_);
  noticeStopped();
}

/// A worker that somebody has stopped (SIGSTOP, a debugger) is silent like a dead one, but can be named at once.
void Supervisor::noticeStopped() {
  for (Watched& process : processes_) {
    siginfo_t info{};
    if (!process.isRunning() || ::waitid(P_PID, static_cast<id_t>(process.pid), &info, WSTOPPED | WCONTINUED | WNOHANG) != 0 ||
        info.si_pid == 0)
      continue;
    if (info.si_code == CLD_CONTINUED) {
      process.stoppedAt.reset();
    } else if (!process.stoppedAt && stop_ == Stop::No) {
      process.stoppedAt = Clock::now();
      journal_.append(process.rank, "warning",
                      {{"text", fmt::format("is stopped by SIG{}; it has {} s to go on", ::sigabbrev_np(info.si_status),
                                            kMostStopped.count() / 1000)}});
    }
  }
}

void Supervisor::readOutput(Watched& process) {
  std::array<char, kReadChunk> chunk;
  const ssize_t count = ::read(process.output.get(), chunk.data(), chunk.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    process.output.close();  // its right; whether it was well is for its exit to say
    if (!process.line.empty()) takeLine(process, std::exchange(process.line, {}));
    return;
  }
  std::string_view piece(chunk.data(), static_cast<std::size_t>(count));
  for (std::size_t newline = piece.find('\n'); newline != std::string_view::npos; newline = piece.find('\n')) {
    process.line += piece.substr(0, newline);
    piece.remove_prefix(newline + 1);
    if (!process.isSkipping) takeLine(process, process.line);
    process.isSkipping = false;
    process.line.clear();
  }
  process.line += piece;
  if (process.line.size() > kMostLine) {
    if (!process.isSkipping)
      journal_.append(process.rank, "warning",
                      {{"text", fmt::format("wrote a line of more than {} bytes; it was dropped", kMostLine)}});
    process.isSkipping = true;
    process.line.clear();
  }
}

void Supervisor::takeLine(Watched& process, std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  if (line.starts_with('{')) {
    auto event = parseJson(line, "event");
    if (event && event->is_object() && !textOf(*event, "event", {}).empty()) return takeEvent(process, *event);
  }
  // a library that prints where only events should be: kept, for it may matter to someone
  journal_.append(process.rank, "log", {{"level", "info"}, {"text", std::string(line)}});
}

void Supervisor::takeEvent(Watched& process, const Json& event) {
  const std::string name = textOf(event, "event", {});
  if (process.isStore()) {
    if (name == "store") storePort_ = static_cast<int>(std::clamp<std::int64_t>(integerOf(event, "port", 0), 0, 65535));
    return;
  }
  if (name == "started" || name == "ended") {  // ours alone
    journal_.append(process.rank, "log",
                    {{"level", "info"}, {"text", event.dump(-1, ' ', false, Json::error_handler_t::replace)}});
    return;
  }
  if (name == "step") process.lastStep = std::max(process.lastStep, integerOf(event, "step", 0));
  if (name == "finished") process.hasFinished = true;
  if (name == "failed") {
    const std::string cause = textOf(event, "cause", "own");
    reportFailure(process, textOf(event, "reason", "gave no reason"), integerOf(event, "last_step", process.lastStep),
                  cause == "peer" ? "peer" : "own");
    return;
  }
  journal_.append(process.rank, name, event);
}

void Supervisor::reap() {
  for (Watched& process : processes_) {
    if (!process.isRunning()) continue;
    siginfo_t info{};
    // Look first, reap later: until it is reaped its pid, which is also its group's id, cannot be anybody else's.
    if (::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) continue;
    ::kill(-process.pid, SIGKILL);
    for (int chunks = 0; process.output.isOpen() && chunks < kMostChunksAfterEnd; ++chunks) {
      pollfd ready{process.output.get(), POLLIN, 0};
      if (::poll(&ready, 1, 0) <= 0) break;
      readOutput(process);
    }
    if (!process.line.empty() && !process.isSkipping) takeLine(process, std::exchange(process.line, {}));
    process.output.close();
    int status = 0;
    while (::waitpid(process.pid, &status, 0) < 0 && errno == EINTR) {
    }
    process.pid = 0;
    takeEnd(process, status);
  }
}

void Supervisor::takeEnd(Watched& process, int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) awaitOwnSignal();
  if (process.isStore()) {
    if (isStoreEnding_ || stop_ != Stop::No) return;
    const std::string said = lastLineOf(directory_ / "store.log");
    reportFailure(process, fmt::format("the rendezvous store ended ({}){}", endingText(status), said.empty() ? "" : ": " + said),
                  0, "own");
    return;
  }
  const bool wasGood = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (process.hasFailed || (wasGood && process.hasFinished)) return;
  if (WIFSIGNALED(status)) return reportFailure(process, endingText(status), process.lastStep, "own");
  const std::string said = lastLineOf(directory_ / logFileOf(process.rank));
  reportFailure(process,
                fmt::format("left with {} {}{}", endingText(status), wasGood ? "before it had finished" : "without a reason",
                            said.empty() ? "" : "; its log ends with: " + said),
                process.lastStep, "own");
}

/// Slurm and service managers end all processes of a job at once: a worker that dies of that a moment before we hear of it has not
/// failed.
void Supervisor::awaitOwnSignal() {
  const auto until = Clock::now() + kGraceForOurs;
  while (stop_ == Stop::No) {
    pollfd signal{signals_.get(), POLLIN, 0};
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (rest <= 0 || ::poll(&signal, 1, static_cast<int>(rest)) <= 0) return;
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo == SIGCHLD) looksAgain_ = true;
      else beginStop(Stop::Asked);
    }
  }
}

void Supervisor::reportFailure(Watched& process, const std::string& reason, std::int64_t lastStep, std::string_view cause) {
  if (process.hasFailed) return;
  process.hasFailed = true;
  if (stop_ != Stop::No) {  // ours is the reason why it ends: it must not be taken for the job's
    journal_.append(process.rank, "log", {{"level", "info"}, {"text", "ended with the others: " + reason}});
    return;
  }
  hasFailed_ = true;
  journal_.append(process.rank, "failed", {{"node", job_.node}, {"reason", reason}, {"last_step", lastStep}, {"cause", cause}});
  if (cause == "own") {
    beginStop(Stop::AfterFailure);
  } else if (!graceEnd_) {
    graceEnd_ = Clock::now() + kGraceForCulprit;
  }
}

void Supervisor::beginStop(Stop why) {
  if (stop_ != Stop::No) return;
  stop_ = why;
  graceEnd_.reset();
  killAt_ = Clock::now() + kTermToKill;
  signalAll(SIGTERM);
}

void Supervisor::signalAll(int signal) {
  for (const Watched& process : processes_) {
    if (process.isRunning() && !process.isStore()) ::kill(-process.pid, signal);
  }
}

bool Supervisor::workersRun() const {
  return std::ranges::any_of(processes_, [](const Watched& process) { return process.isRunning() && !process.isStore(); });
}

std::optional<Supervisor::Clock::time_point> Supervisor::nextDeadline() const {
  if (killAt_) return killAt_;
  auto next = graceEnd_;
  for (const Watched& process : processes_) {
    if (process.isRunning() && process.stoppedAt && !process.hasFailed && (!next || *process.stoppedAt + kMostStopped < *next))
      next = *process.stoppedAt + kMostStopped;
  }
  return next;
}

void Supervisor::enforceDeadlines() {
  const auto now = Clock::now();
  for (Watched& process : processes_) {
    if (process.isRunning() && process.stoppedAt && !process.hasFailed && now >= *process.stoppedAt + kMostStopped)
      reportFailure(process, fmt::format("was stopped (SIGSTOP) and did not go on for {} s", kMostStopped.count() / 1000),
                    process.lastStep, "own");
  }
  if (graceEnd_ && now >= *graceEnd_) beginStop(Stop::AfterFailure);
  if (killAt_ && now >= *killAt_) {
    signalAll(SIGKILL);
    killAt_ = now + kTermToKill;
  }
}

/// All workers are gone: the store is no longer needed, and what they may have left behind in sessions of its own goes too.
void Supervisor::finish() {
  isStoreEnding_ = true;
  for (Watched& process : processes_) {
    if (!process.isRunning()) continue;
    process.input.close();
    ::kill(-process.pid, SIGTERM);
    const auto killAt = Clock::now() + kTermToKill;
    while (process.isRunning() && Clock::now() < killAt) turn(killAt);
    if (process.isRunning()) ::kill(-process.pid, SIGKILL);
    while (process.isRunning()) turn(std::nullopt);
  }
  const std::vector<int> left = endProcesses(processesOf(directory_), std::chrono::milliseconds(0));
  Json ended{{"state", hasFailed_ ? "failed" : stop_ == Stop::Asked ? "stopped" : "finished"}};
  if (!left.empty()) ended["left"] = left;
  journal_.appendLastWords(-1, "ended", ended);
}

}  // namespace evenkeel
