// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/journal.h"
#include "launcher/agent/node_job.h"
#include "launcher/agent/processes.h"

namespace evenkeel {

/// Starts the processes of one node's part of a run, journals what they say, and sees to it that all of them end: one thread,
/// one poll(). Blocks SIGCHLD, SIGTERM, SIGINT and SIGHUP in its thread and reads them as events; TERM, INT and HUP mean "stop".
class Supervisor {
 public:
  /// `run` is the run's settings, for the journal's first record.
  Supervisor(std::filesystem::path directory, NodeJob job, Json run, Journal& journal);

  /// Starts the store, if this node hosts it, and then the workers; blocks until all of them are started, at most `deadline`.
  /// Returns the store's port (0 if it is hosted elsewhere). After an Error nothing is left running and the journal is ended.
  [[nodiscard]] Result<int> start(std::chrono::milliseconds deadline);

  /// Watches until nothing of the run is left on this node and the journal is ended. Unbounded: training may take weeks.
  void watch();

  /// A process of this node, or the start, has failed; else all have finished or were stopped.
  [[nodiscard]] bool hasFailed() const { return hasFailed_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stop { No, Asked, AfterFailure };

  /// The store has rank -1.
  struct Watched {
    int rank = -1, pid = 0;
    Fd output, input;
    std::string line;         // what has come of a line that is not whole yet
    bool isSkipping = false;  // the rest of an overlong line
    bool hasFinished = false;
    bool hasFailed = false;  // said so itself, or was found dead
    std::int64_t lastStep = 0;
    std::optional<Clock::time_point> stoppedAt;  // by a signal such as SIGSTOP, and not continued since
    [[nodiscard]] bool isRunning() const { return pid != 0; }
    [[nodiscard]] bool isStore() const { return rank < 0; }
  };

  Result<void> startStore();
  Result<void> startWorker(const NodeJob::Rank& rank);
  [[nodiscard]] std::map<std::string, std::string> environmentOf(const NodeJob::Rank& rank) const;

  /// One poll(), at most until `until`, and everything that it found.
  void turn(std::optional<Clock::time_point> until);
  void readSignals();
  void noticeStopped();
  void readOutput(Watched& process);
  void takeLine(Watched& process, std::string_view line);
  void takeEvent(Watched& process, const Json& event);
  void reap();
  void takeEnd(Watched& process, int status);
  void awaitOwnSignal();

  void reportFailure(Watched& process, const std::string& reason, std::int64_t lastStep, std::string_view cause);
  void beginStop(Stop why);
  void signalAll(int signal);
  [[nodiscard]] bool workersRun() const;
  [[nodiscard]] std::optional<Clock::time_point> nextDeadline() const;
  void enforceDeadlines();
  void finish();

  std::filesystem::path directory_;
  NodeJob job_;
  Json run_;
  Journal& journal_;
  Fd signals_;
  std::vector<Watched> processes_;  // the store first, if there is one
  int storePort_ = 0;
  Stop stop_ = Stop::No;
  bool looksAgain_ = false;  // for ended processes: a SIGCHLD was taken elsewhere
  bool hasFailed_ = false;
  bool isStoreEnding_ = false;                 // its work is done
  std::optional<Clock::time_point> graceEnd_;  // a victim spoke; the culprit may still do so
  std::optional<Clock::time_point> killAt_;
};

}  // namespace evenkeel
