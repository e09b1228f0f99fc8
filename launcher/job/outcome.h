// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/job/history.h"

namespace evenkeel {

/// Collects what is known of the nodes of a run and decides how it ended, and by whose fault.
class Outcome {
 public:
  explicit Outcome(const RunRecord& run) : nodes_(run.nodes.size()), run_(run) {}

  void takeRecord(int node, const Json& record);
  /// The node's agent is gone without a last record.
  void takeGone(int node);
  /// Slurm's job is over: what has no last record has none. `why` if it was Slurm that ended it.
  void takeOver(const std::optional<std::string>& why);
  /// The node cannot be asked (any more), and why.
  void takeUnreachable(int node, const std::string& why);

  [[nodiscard]] bool hasEnded(int node) const;  // by a last record, or gone
  [[nodiscard]] bool allEnded() const;
  [[nodiscard]] bool hasOwnFailure() const;  // a rank, or a node that is gone, failed for reasons of its own
  [[nodiscard]] bool hasFailure() const;     // also as a victim

  struct Verdict {
    JobState state = JobState::Running;
    std::optional<JobFailure> failed;
  };
  /// The first rank that failed for reasons of its own, else Slurm that has ended the job, else a node that is gone, else (if others say that a peer fell
  /// silent) a node that does not answer, else the first victim. State Running: not known, because a node cannot be asked.
  [[nodiscard]] Verdict verdict() const;

 private:
  struct Failure {
    JobFailure failure;
    double time = 0;
    bool isOwn = true;
  };
  struct Node {
    std::string end;  // "finished", "failed", "stopped"; empty: none yet
    bool isGone = false;
    std::string unreachable;  // why; empty: it answers
    std::int64_t lastStep = 0;
  };
  [[nodiscard]] std::optional<JobFailure> firstCause() const;
  [[nodiscard]] JobFailure failureOf(std::size_t node, std::string reason) const;

  std::vector<Node> nodes_;
  std::vector<Failure> failures_;
  bool isOver_ = false;  // the Slurm job
  std::optional<std::string> endedBySlurm_;
  const RunRecord& run_;
};

}  // namespace evenkeel
