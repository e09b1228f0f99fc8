// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/run.h"
#include "launcher/job/status.h"
#include "launcher/ssh/host.h"
#include "launcher/ssh/ssh_login.h"

namespace evenkeel {

/// The longest that each kind of wait may take; nothing here waits without one.
struct LaunchTimeouts {
  std::chrono::milliseconds connect{15'000};     // address, key exchange and login of one node
  std::chrono::milliseconds command{60'000};     // one short command on a node; copying has no limit but that of silence
  std::chrono::milliseconds start{120'000};      // until a node's store and workers run
  std::chrono::milliseconds reconnect{120'000};  // a node that cannot be reached for so long is given up as lost
  std::chrono::milliseconds stop{30'000};        // until a node has stopped its processes and said so
  std::chrono::milliseconds peer{60'000};        // until a rank that hears nothing from another one fails
  bool operator==(const LaunchTimeouts&) const = default;
};

/// A run that a Slurm job starts, on nodes that nobody logs in to: all that is sent goes to one login node, into a folder that the
/// nodes share with it, and all that comes back is read there.
struct SlurmRequest {
  SshTarget login;                                           // where sbatch, squeue and scancel are; no host: this machine
  std::vector<std::pair<std::string, std::string>> options;  // of sbatch, without the dashes: {"partition", "gpu"}; no value: ""
  std::string folder;                                        // the shared one, absolute; empty: the home directory's XDG folders
  bool operator==(const SlurmRequest&) const = default;
};

/// What is to run, and where.
struct LaunchRequest {
  Plan plan;
  Run run;
  bool local = false;              // every node is this machine, whatever its ssh target says
  std::optional<SlurmRequest> slurm;  // not with local; the nodes' ssh targets are not used
  std::string resume;              // a checkpoint, or a folder of them, on the machine of rank 0; empty: from the beginning
  std::string continues;           // the failed run that this one goes on for; empty: none
  std::filesystem::path programs;  // the folder of evenkeel-agent and evenkeel-worker
  LaunchTimeouts timeouts;
};

/// One thing that was looked at on one node before anything is started there.
struct PreflightRow {
  std::string node;   // empty: concerns the job as a whole
  std::string check;  // "plan", "run", "data", "reachable", "machine", "disk", "programs", "features", "address", "connections", "slurm", "tensorboard"
  bool passed = false;
  std::string detail;  // what was found, or why it will not do
  std::string remedy;  // may be empty
  bool operator==(const PreflightRow&) const = default;
};

/// Told as things happen, one call at a time, from the thread that called (preflight: from several, never two at once).
struct JobObserver {
  virtual ~JobObserver() = default;
  virtual void onPreflight(const PreflightRow&) {}
  /// Bytes of programs, then of data, that have gone to a node, of those that it lacked: as they travel, that is packed.
  virtual void onCopy(const std::string& /*node*/, std::uint64_t /*done*/, std::uint64_t /*total*/) {}
  virtual void onState(JobState) {}
  /// A step that every rank has reported: each step once, in order.
  virtual void onStep(const StepRecord&) {}
  /// What a rank (or the agent: -1) has to say; level is "info" or "warning".
  virtual void onLog(const std::string& /*node*/, int /*rank*/, const std::string& /*level*/, const std::string& /*text*/) {}
  /// The loss on text that is not trained on, after that step.
  virtual void onEvaluation(std::int64_t /*step*/, double /*loss*/) {}
  /// A checkpoint lies on the disk of rank 0's machine.
  virtual void onCheckpoint(std::int64_t /*step*/, const std::string& /*path*/) {}
  /// The connection to a node is gone (text says why) or back (text is empty). The job goes on without us meanwhile.
  virtual void onConnection(const std::string& /*node*/, const std::string& /*text*/) {}
  virtual void onFailure(const JobFailure&) {}
};

/// What a stop left behind, node by node.
struct StopReport {
  struct Node {
    std::string node;
    bool stopped = false;   // nothing of the run is left there
    std::vector<int> left;  // process ids that survived
    std::string problem;    // why it is not known to have stopped; empty if it has
  };
  std::vector<Node> nodes;
  [[nodiscard]] bool complete() const;
};

/// Makes a connection to a node, unless the stop comes first. Replaced in tests.
using Connector = std::function<Result<std::unique_ptr<Host>>(const SshTarget&, const std::string& name,
                                                              std::chrono::milliseconds deadline, std::stop_token)>;

/// Settles what a login needs a person for; called from the threads of a job, several at once.
struct LoginAdvisor {
  virtual ~LoginAdvisor() = default;
  /// By LoginObstacle::secretName(): those that a person has given until now.
  [[nodiscard]] virtual std::map<std::string, std::string> secrets() = 0;
  /// True: the login can be tried again. May wait for a person as long as it likes, until the stop; no deadline runs meanwhile.
  [[nodiscard]] virtual bool settle(const std::string& node, const LoginObstacle& obstacle, const std::stop_token& stop) = 0;
};

/// The usual connector (this machine, or SSH), with somebody to ask.
[[nodiscard]] Connector connectorAsking(std::shared_ptr<LoginAdvisor> advisor);

class Preparation;
class RunHistory;

/// Starts jobs, follows them, stops them, remembers them. A job is detached on its nodes: it needs no launcher to go on, and
/// any launcher of the same person on this machine may follow or stop it. Objects share nothing but the history's file.
class Launcher {
 public:
  /// Opens (or makes) the run history: $XDG_DATA_HOME/evenkeel/runs.sqlite, by default under ~/.local/share.
  [[nodiscard]] static Result<Launcher> open();
  [[nodiscard]] static Result<Launcher> open(Connector connect);
  /// The same with other folders (history; packed training text) and other hosts, for tests.
  [[nodiscard]] static Result<Launcher> open(const std::filesystem::path& dataDirectory,
                                             const std::filesystem::path& cacheDirectory, Connector connect);
  Launcher(Launcher&&) noexcept;
  Launcher& operator=(Launcher&&) noexcept;
  ~Launcher();

  /// Looks at everything that a start needs, on all nodes at once, and changes nothing: every row is told to the observer and
  /// returned, failures as rows with passed = false. An Error only if the request cannot be examined at all; a stop request is
  /// Error::Cancelled, and what it interrupted is no row.
  [[nodiscard]] Result<std::vector<PreflightRow>> preflight(const LaunchRequest& request, JobObserver& observer,
                                                            std::stop_token stop = {});

  /// The commands that a start would run, a line each, to be read or copied; nothing is connected.
  [[nodiscard]] Result<std::vector<std::string>> dryRun(const LaunchRequest& request);

  /// Preflight, copy what the nodes lack, start the agents (rank 0's first). Returns the run's id once all workers run, or once Slurm
  /// has taken the job (state Preparing until it starts).
  /// On failure nothing is left running, and the Error names every node that objected; a stop request is Error::Cancelled.
  [[nodiscard]] Result<std::string> startJob(const LaunchRequest& request, JobObserver& observer, std::stop_token stop = {});

  /// Tells the observer what the job has done so far and then what it does, until it ends: every record of every node exactly
  /// once, also across cut connections. When a node fails, the others are stopped. A stop request ends the following, not the
  /// job, and returns the status of that moment. An unknown run is InvalidInput.
  [[nodiscard]] Result<JobStatus> followJob(const std::string& run, JobObserver& observer, std::stop_token stop = {});

  /// Ends the job on all of its nodes; at most timeouts.stop. Stopping an ended job is no error.
  [[nodiscard]] Result<StopReport> stopJob(const std::string& run);

  /// Asks the nodes if the job has not ended (at most a few seconds; what does not answer is left as it was known).
  [[nodiscard]] Result<JobStatus> statusOf(const std::string& run);

  /// The id of the run that a person means: a whole id, or the beginning of only one. None or several is InvalidInput.
  [[nodiscard]] Result<std::string> runNamed(const std::string& beginning);

  /// All runs, newest first, as they are known here.
  [[nodiscard]] Result<std::vector<RunRow>> runs();

  /// The last bytes of what a rank wrote to its log.
  [[nodiscard]] Result<std::string> logOf(const std::string& run, int rank, std::size_t mostBytes = std::size_t{1} << 20U);

  /// The number of ranks of a run.
  [[nodiscard]] Result<int> worldSizeOf(const std::string& run);

  /// The last checkpoint that a run has written, on the machine of its rank 0; empty if there is none.
  [[nodiscard]] Result<std::string> lastCheckpointOf(const std::string& run);

  /// The records of one event that the ranks of a run have written until now, in the order of their times; asks the nodes if the job has
  /// not ended.
  [[nodiscard]] Result<std::vector<Json>> recordsOf(const std::string& run, const std::string& event);

  /// What a run was started with, but for the folder of the programs.
  [[nodiscard]] Result<LaunchRequest> requestOf(const std::string& run);

  /// How many steps a run was started for.
  [[nodiscard]] Result<std::int64_t> totalStepsOf(const std::string& run);

 private:
  [[nodiscard]] Result<std::string> submit(const LaunchRequest& request, Preparation& preparation, JobObserver& observer,
                                           const std::stop_token& stop);
  Launcher(std::unique_ptr<RunHistory> history, std::filesystem::path cacheDirectory, Connector connect);
  std::unique_ptr<RunHistory> history_;
  std::filesystem::path cacheDirectory_;  // of this machine
  Connector connect_;
};

}  // namespace evenkeel
