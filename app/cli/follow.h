// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "app/cli/command.h"
#include "app/cli/interrupt.h"
#include "core/report/event_file.h"
#include "launcher/job/job.h"

namespace evenkeel::cli {

/// Shows a job on stderr: preflight, copying, steps (one line that is rewritten on a terminal, else at most one line a second),
/// warnings and failures.
class JobProgress final : public JobObserver {
 public:
  /// totalSteps: 0 if not known. Of a rehearsal no loss is shown, for there is none.
  explicit JobProgress(std::int64_t totalSteps, bool isRehearsal = false);
  void onPreflight(const PreflightRow& row) override;
  void onCopy(const std::string& node, std::uint64_t done, std::uint64_t total) override;
  void onState(JobState state) override;
  void onStep(const StepRecord& step) override;
  void onLog(const std::string& node, int rank, const std::string& level, const std::string& text) override;
  void onCheckpoint(std::int64_t step, const std::string& path) override;
  void onConnection(const std::string& node, const std::string& text) override;
  void onFailure(const JobFailure& failure) override;
  void onEvaluation(std::int64_t step, double loss) override;
  /// Steps and evaluations go into a file for TensorBoard in that folder too.
  [[nodiscard]] Result<void> alsoInto(const std::filesystem::path& folder);
  /// Ends the rewritten line.
  void endLine();

 private:
  void line(const std::string& text, bool isMilestone);

  struct Copy {
    std::chrono::steady_clock::time_point begin;
    std::uint64_t first = 0, total = 0, done = 0;  // bytes: at its begin, ...
  };
  std::map<std::string, Copy> copies_;  // by node
  std::int64_t totalSteps_;
  bool isRehearsal_;
  std::optional<JobState> state_;
  bool onTerminal_ = false, isOpen_ = false;
  std::chrono::steady_clock::time_point lastLine_{}, lastFlush_{};
  std::optional<report::EventFile> board_;
};

/// Ctrl-C while a job is followed: the first stops following, a second within three seconds stops the job.
class FollowInterrupt {
 public:
  FollowInterrupt();
  [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }
  [[nodiscard]] bool wasInterrupted() const { return stop_.stop_requested(); }
  /// Waits out the three seconds; true if a second interrupt came.
  [[nodiscard]] bool secondCame();

 private:
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
  InterruptWatch watch_;
};

/// --tensorboard FOLDER, for alsoInto().
void addBoardOption(CLI::App& command, std::string& folder);

/// What following came to: prints its outcome (after Ctrl-C how to go on), and returns the exit code.
[[nodiscard]] int conclude(Launcher& launcher, const JobStatus& status, FollowInterrupt& interrupt, bool asJson);

/// The folder of this program; agent and worker lie beside it.
[[nodiscard]] std::filesystem::path programFolder();

/// Follows a job to its end (or to Ctrl-C), goes on with its next attempts if it fails and is to go on, prints the outcome of the
/// last, and returns the exit code.
[[nodiscard]] int followToEnd(Launcher& launcher, std::string run, JobProgress& progress, FollowInterrupt& interrupt,
                              bool asJson);

/// The outcome for people: state, loss curve as a line of blocks, measured against predicted time, peak memory.
[[nodiscard]] std::string describe(const JobStatus& status);

/// 0 for a job that runs or has finished, 1 for one that failed or was stopped.
[[nodiscard]] int exitCodeOf(JobState state);

}  // namespace evenkeel::cli
