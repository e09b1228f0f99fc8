// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "launcher/job/outcome.h"

namespace evenkeel {

/// Hands each step on when the last rank has reported it.
class StepMerger {
 public:
  explicit StepMerger(int worldSize) : worldSize_(worldSize) {}
  /// The whole step, if this record completes it.
  [[nodiscard]] std::optional<StepRecord> take(const Json& record);

 private:
  struct Partial {
    StepRecord step;
    int ranks = 0;
  };
  int worldSize_;
  std::map<std::int64_t, Partial> partial_;
};

/// Follows one run to its end: a thread a node reads the journal's tail and reconnects when it is cut; the caller's thread
/// stores what comes, tells the observer and decides.
class Follower {
 public:
  Follower(RunHistory& history, RunRecord run, const Connector& connect, JobObserver& observer, std::stop_token stop);
  [[nodiscard]] Result<JobStatus> follow();

 private:
  using Clock = std::chrono::steady_clock;
  struct Message {
    enum class Kind { Record, Cut, Back, Gone, Refused, Queue, WatchEnded };  // the last two: of a Slurm job; its cuts are those of all nodes
    int node = 0;
    Kind kind = Kind::Record;
    Json record;  // or what Slurm says
    Error error;  // of Cut and Refused
  };
  struct Node {
    std::optional<Clock::time_point> cutSince;
    std::string reason;            // of the cut
    std::optional<Error> refused;  // why it makes no sense to try on
  };

  // of the nodes' threads
  void tailNode(int node, std::int64_t from, const std::stop_token& stop);
  /// One connection; true if the node's tail is over.
  bool tailOnce(int node, std::int64_t& next, bool& wasCut, const std::stop_token& stop);
  /// The same for all nodes of a Slurm job, through its login node.
  void watchSlurm(std::vector<std::int64_t> next, const std::stop_token& stop);
  bool watchOnce(std::vector<std::int64_t>& next, bool& wasCut, const std::stop_token& stop);
  void post(Message message, const std::stop_token& stop);

  // of the caller's thread
  Result<void> replay(const std::vector<std::int64_t>& until);  // by node: the first record that is not told
  /// What has come, in order; waits for it until `until` or a stop.
  std::vector<Message> take(std::optional<Clock::time_point> until);
  Result<void> store(const std::vector<Message>& messages);
  void handle(const Message& message);
  void handleQueue(const Json& queue);
  void noteRunning();
  void tell(int node, const Json& record);
  [[nodiscard]] bool isSettled(int node) const;
  [[nodiscard]] bool isLongCut(int node) const;
  [[nodiscard]] bool isOver() const;
  [[nodiscard]] std::optional<Clock::time_point> nextDeadline() const;
  void stopOthersIfDue();
  Result<JobStatus> settle();

  RunHistory& history_;
  RunRecord run_;
  const Connector& connect_;
  JobObserver& observer_;
  std::stop_token stop_;
  Outcome outcome_;
  StepMerger steps_;
  std::vector<Node> nodes_;
  std::optional<Clock::time_point> victimSince_;  // a victim spoke; the culprit may still do so
  std::vector<std::jthread> stoppers_;
  bool isWatchOver_ = false;  // of a Slurm job

  std::mutex mutex_;  // of what follows
  std::condition_variable_any changed_;
  std::deque<Message> queue_;
};

}  // namespace evenkeel
