// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/gui/run/login_desk.h"

namespace evenkeel::gui {

enum class SessionPhase {
  Idle,       // nothing was begun
  Checking,   // preflight only
  Starting,   // preflight, copying, starting
  Following,  // the job runs (or is replayed)
  Detached,   // we stopped following; the job goes on
  Over,       // the job ended, or it could not be started: see error, state, failure
};

struct LogEntry {
  std::string node;
  int rank = -1;  // -1: the agent
  bool isWarning = false;
  std::string text;
};

/// The loss on text that is not trained on.
struct EvaluatedStep {
  std::int64_t step = 0;
  double loss = 0;
};

/// All that is known of a session's job but its steps and log: a value, cheap to copy.
struct SessionState {
  SessionPhase phase = SessionPhase::Idle;
  std::string run;  // empty until there is an id
  JobState job = JobState::Preparing;
  bool isJobKnown = false;      // job was told, not assumed
  int worldSize = 0;            // 0: not known
  std::int64_t totalSteps = 0;  // 0: not known
  std::vector<PreflightRow> rows;
  struct Copy {
    std::uint64_t done = 0, total = 0;  // bytes
    bool operator==(const Copy&) const = default;
  };
  std::map<std::string, Copy> copies;       // by node
  std::map<std::string, std::string> lost;  // nodes out of reach, and why
  std::optional<double> predictedIterationMs;
  std::optional<JobFailure> failure;
  std::string lastLines;            // of the failed rank's log
  std::int64_t checkpointStep = 0;  // of the newest checkpoint; 0: none
  std::string checkpoint;           // its folder, on the machine of rank 0
  std::optional<Error> error;       // why it could not be checked, started or followed
  bool isStopping = false;
  std::optional<StopReport> stopReport;
  std::optional<Error> stopError;
};

/// What came since the last look, each step, evaluation and log line once, in order.
struct SessionUpdate {
  SessionState state;
  std::vector<StepRecord> steps;
  std::vector<EvaluatedStep> evaluations;
  std::vector<LogEntry> logs;
};

/// Starts a job or attaches to one, and follows it on a thread of its own. That thread only writes into a snapshot; whoever shows
/// it polls takeUpdate(). A session is used for one job; make a new one for the next.
class JobSession final : public QObject {
  Q_OBJECT

 public:
  /// What a login needs a person for is asked at the desk.
  explicit JobSession(std::shared_ptr<LoginDesk> desk, QObject* parent = nullptr);
  /// Stops following, never the job. A start that is still under way is given up, and nothing of it is left running; a stop that
  /// was asked for is carried out first (at most LaunchTimeouts::stop).
  ~JobSession() override;

  void check(LaunchRequest request);
  void start(LaunchRequest request);
  /// Replays what a job did and follows it while it runs.
  void attach(const std::string& run);
  /// Stops following; during a start: gives it up.
  void detach();
  /// Ends the job on all nodes. Without a run id (nothing started yet): as detach().
  void stopJob();

  /// To be called from one place, 10 to 30 times a second.
  [[nodiscard]] SessionUpdate takeUpdate();

 private:
  struct Shared;
  void begin(SessionPhase phase, std::function<void(Launcher&, std::stop_token)> work);

  std::shared_ptr<Shared> shared_;
  std::jthread worker_, stopper_;
};

}  // namespace evenkeel::gui
