// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/run.h"

namespace evenkeel {

/// A job.json for `plan` with the worker's defaults, short timeouts and `data` as its text.
struct JobText {
  Plan plan;
  std::int64_t steps = 20;
  std::string data;  // empty: trainingText()
  double peerSeconds = 30, startSeconds = 60;
  double learningRate = 1e-2, weightDecay = 0.1;
  bool rehearse = false;
  std::int64_t checkpointEvery = 0;
  std::string checkpointDirectory, resume;
};

/// Its run's settings.
[[nodiscard]] Run runOf(const JobText& job);

/// Some kilobytes of ASCII text with structure to learn.
[[nodiscard]] const std::string& trainingText();

/// What one rank has said and how it ended.
struct RankOutcome {
  int exitStatus = -1;  // or minus the signal that ended it
  std::vector<Json> events;
  std::string log;  // stderr
  std::chrono::steady_clock::time_point ended;

  [[nodiscard]] const Json* last(const std::string& event) const;  // null: there is none
  /// A number of every step, for example "loss".
  [[nodiscard]] std::vector<double> ofSteps(const std::string& field) const;
};

/// Real workers, one process a rank, with a real store, as the agent would start them. Everything that is still running when this
/// goes out of scope is killed.
class WorkerRun {
 public:
  using Environment = std::map<std::string, std::string>;

  explicit WorkerRun(const JobText& job) : WorkerRun(std::vector<JobText>{job}) {}
  /// Rank r reads jobs[r], or the last one where there are fewer. Starts the store only.
  explicit WorkerRun(const std::vector<JobText>& jobs);
  ~WorkerRun();
  WorkerRun(const WorkerRun&) = delete;
  WorkerRun& operator=(const WorkerRun&) = delete;

  /// Starts all ranks; the environment of rank r is changed by changes[r] (an empty value removes a variable).
  void start(const std::map<int, Environment>& changes = {});
  /// Starts `evenkeel-worker --job FILE` alone with any bytes as its file.
  void startWithFile(const std::string& bytes);

  /// Returns once rank `rank` has reported `steps` steps; false: it ended before, or 60 s passed.
  [[nodiscard]] bool awaitStep(int rank, std::int64_t steps);
  /// Returns once these ranks have ended; false: 100 s passed.
  [[nodiscard]] bool awaitEnd(const std::vector<int>& ranks);
  void signal(int rank, int number);
  void signalStore(int number);
  /// Waits for all ranks; what still runs after `limit` is killed and says so in its log.
  std::vector<RankOutcome> finish(std::chrono::seconds limit = std::chrono::seconds(100));

 private:
  struct Process {
    pid_t pid = -1;
    int out = -1, err = -1;
    std::string line;  // begun, not ended
    RankOutcome outcome;
    [[nodiscard]] bool isOpen() const { return out >= 0 || err >= 0; }
  };
  [[nodiscard]] std::filesystem::path jobFile(std::size_t rank) const;
  Process spawn(const std::vector<std::string>& arguments, const Environment& changes, int* input);
  void pump(const std::function<bool()>& isDone, std::chrono::steady_clock::time_point deadline);
  static void read(Process& process, int& descriptor, bool isEvents);

  std::filesystem::path folder_;
  std::vector<JobText> jobs_;
  int ranks_ = 0, storePort_ = 0, storeInput_ = -1;
  Process store_;
  std::vector<Process> processes_;
};

}  // namespace evenkeel
