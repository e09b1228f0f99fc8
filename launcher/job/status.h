// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace evenkeel {

enum class JobState { Preparing, Running, Finished, Failed, Stopped };

/// "preparing", "running", "finished", "failed", "stopped"
[[nodiscard]] std::string_view name(JobState state);
[[nodiscard]] std::optional<JobState> jobStateOf(std::string_view name);
[[nodiscard]] constexpr bool hasEnded(JobState state) { return state != JobState::Preparing && state != JobState::Running; }

/// The first cause of a job's end. Rank -1: a node or the store, not a rank.
struct JobFailure {
  int rank = -1;
  std::string node, reason;
  std::int64_t lastStep = 0;  // 0: before the first was done
  bool operator==(const JobFailure&) const = default;
};

/// A step that every rank has reported. Times are those of the slowest rank; the loss is not finite if training diverged.
struct StepRecord {
  std::int64_t step = 0;  // from 1
  double loss = 0;
  std::int64_t tokens = 0;
  double iterationMs = 0, computeMs = 0, p2pMs = 0, bubbleMs = 0, syncMs = 0, optimizerMs = 0;
  std::int64_t peakBytes = 0;  // of the fullest rank
  double gradNorm = 0, learningRate = 0;
  bool operator==(const StepRecord&) const = default;
};

struct JobStatus {
  std::string run;
  JobState state = JobState::Preparing;
  std::int64_t steps = 0;      // done by every rank
  std::vector<double> losses;  // one a step
  bool isRehearsal = false;    // the losses are none, and the times are slept
  std::string queue;           // of a run that Slurm starts and that has not ended: how its job stands, "Slurm job 7 is pending: Resources"
  std::vector<std::string> attempts;  // the runs that this one goes on for, the first one first
  struct Spread {
    double median = 0, p5 = 0, p95 = 0;
    bool operator==(const Spread&) const = default;
  };
  std::optional<Spread> iterationMs;           // none before the first step
  std::optional<double> predictedIterationMs;  // none if the plan has no prediction
  double tokensPerSecond = 0;                  // of the median iteration; 0 before the first step
  std::map<int, std::int64_t> peakBytes;       // by rank
  std::optional<JobFailure> failed;
  bool operator==(const JobStatus&) const = default;
};

struct RunRow {
  std::string run;
  JobState state = JobState::Preparing;
  double started = 0;  // seconds since 1970, UTC
  std::int64_t steps = 0;  // with those of the runs that it goes on for
  bool isRehearsal = false;
  bool isQueued = false;  // handed to Slurm, which has not begun with it as far as this machine has heard
  bool operator==(const RunRow&) const = default;
};

/// What `launch --json` and `status --json` print. Losses that are not finite are null.
[[nodiscard]] Json toJson(const JobStatus& status);

/// What `runs --json` prints: {"runs": [...]}, in the given order.
[[nodiscard]] Json toJson(const std::vector<RunRow>& runs);

/// How a measured time compares with its prediction, both above 0: "-7 %" if the prediction was so much too short, beyond a factor of 2 "13x slower
/// than predicted".
[[nodiscard]] std::string againstPrediction(double measured, double predicted);

/// Median and percentiles (linear between neighbours) of at least one value.
[[nodiscard]] JobStatus::Spread spreadOf(std::vector<double> values);

}  // namespace evenkeel
