// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "launcher/job/job.h"
#include "launcher/job/sqlite.h"
#include "launcher/job/status.h"

namespace evenkeel {

/// Where a node's part of a run is, and how to get there.
struct JobNode {
  std::string name;
  SshTarget ssh;          // no host: this machine
  std::string directory;  // of the run, there
  std::string agent;      // the program, there
  int firstRank = 0, rankCount = 0;
  bool operator==(const JobNode&) const = default;
};

/// The job of Slurm that a run is.
struct SlurmJob {
  std::string id;  // a number
  SlurmRequest request;
  std::string directory;  // of the run, shared by login node and nodes
  bool operator==(const SlurmJob&) const = default;
};

struct RunRecord {
  std::string id;
  double created = 0;  // seconds since 1970, UTC
  JobState state = JobState::Preparing;
  int worldSize = 0;
  Json plan, run;
  std::vector<JobNode> nodes;  // by node rank
  LaunchTimeouts timeouts;
  std::optional<double> predictedIterationMs;
  std::optional<JobFailure> failed;
  std::string continues;       // the failed run that this one goes on for; empty: none
  bool stopRequested = false;  // a person asked for its end: what fails from then on fails because of that
  std::optional<SlurmJob> slurm;
};

/// Every run of this person on this machine: plan, settings, all records of all nodes, outcome. An SQLite file that several
/// processes may use at once; each object from one thread at a time.
class RunHistory {
 public:
  /// Opens or makes the file. A damaged one, or one of a newer version, is an Error.
  [[nodiscard]] static Result<std::unique_ptr<RunHistory>> open(const std::filesystem::path& file);

  [[nodiscard]] Result<void> add(const RunRecord& record);
  /// The id that is written whole, or the only one that begins so. None, or several: InvalidInput, which names the several.
  [[nodiscard]] Result<std::string> idNamed(const std::string& beginning);
  /// An unknown id is InvalidInput.
  [[nodiscard]] Result<RunRecord> find(const std::string& id);
  /// The number that Slurm has given to a run's job.
  Result<void> setSlurmJob(const std::string& id, const SlurmJob& job);
  /// Returns false if it had that state already: of several that find out that a run has ended, one is the first.
  Result<bool> setState(const std::string& id, JobState state, const std::optional<JobFailure>& failure = {});

  [[nodiscard]] Result<void> requestStop(const std::string& id);

  /// Stores records of a node's journal. Those that are known already are passed over, so that a record counts once however
  /// often and by however many it is delivered.
  [[nodiscard]] Result<void> append(const std::string& id, int node, const std::vector<Json>& records);
  /// 0 if there is none.
  [[nodiscard]] Result<std::int64_t> lastSeq(const std::string& id, int node);
  /// All records in the order of their times.
  [[nodiscard]] Result<void> replay(const std::string& id, const std::function<void(int node, const Json& record)>& onRecord);

  [[nodiscard]] Result<std::vector<RunRow>> rows();
  /// Losses and steps include those of the runs that it goes on for, as far as they were not trained again.
  [[nodiscard]] Result<JobStatus> statusOf(const std::string& id);

 private:
  explicit RunHistory(Database database) : database_(std::move(database)) {}
  Result<void> prepareSchema(const std::filesystem::path& file);
  Result<void> insert(const std::string& id, int node, const Json& record);
  Result<void> addLosses(const RunRecord& record, std::map<std::int64_t, double>& losses, std::vector<std::string>& attempts);
  Database database_;
};

}  // namespace evenkeel
