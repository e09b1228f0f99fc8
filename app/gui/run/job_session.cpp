// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/job_session.h"

#include <algorithm>
#include <mutex>

namespace evenkeel::gui {
namespace {

constexpr std::size_t kLastLines = 20;
constexpr std::size_t kLastBytes = 16 * 1024;

std::string lastLinesOf(const std::string& text) {
  std::size_t at = text.size();
  while (at > 0 && text[at - 1] == '\n') --at;
  const std::size_t end = at;
  for (std::size_t lines = 0; at > 0; --at) {
    if (text[at - 1] == '\n' && ++lines == kLastLines) break;
  }
  return text.substr(at, end - at);
}

}  // namespace

/// The snapshot: written by the worker's and the stopper's thread, read by the window's.
struct JobSession::Shared final : JobObserver {
  explicit Shared(std::shared_ptr<LoginDesk> theDesk) : desk(std::move(theDesk)) {}
  [[nodiscard]] Result<Launcher> openLauncher() const { return Launcher::open(connectorAsking(desk)); }

  const std::shared_ptr<LoginDesk> desk;
  std::mutex mutex;  // of what follows
  SessionState state;
  std::vector<StepRecord> steps;
  std::vector<EvaluatedStep> evaluations;
  std::vector<LogEntry> logs;

  template <class F>
  void change(F&& f) {
    const std::lock_guard lock(mutex);
    f(state);
  }

  void onPreflight(const PreflightRow& row) override {
    change([&](SessionState& s) { s.rows.push_back(row); });
  }
  void onCopy(const std::string& node, std::uint64_t done, std::uint64_t total) override {
    change([&](SessionState& s) { s.copies[node] = {done, total}; });
  }
  void onState(JobState job) override {
    change([&](SessionState& s) {
      s.job = job;
      s.isJobKnown = true;
    });
  }
  void onStep(const StepRecord& step) override {
    const std::lock_guard lock(mutex);
    steps.push_back(step);
  }
  void onEvaluation(std::int64_t step, double loss) override {
    const std::lock_guard lock(mutex);
    evaluations.push_back({step, loss});
  }
  void onLog(const std::string& node, int rank, const std::string& level, const std::string& text) override {
    const std::lock_guard lock(mutex);
    logs.push_back({node, rank, level == "warning", text});
  }
  void onCheckpoint(std::int64_t step, const std::string& path) override {
    change([&](SessionState& s) {
      s.checkpointStep = step;
      s.checkpoint = path;
    });
  }
  void onConnection(const std::string& node, const std::string& text) override {
    change(
        [&](SessionState& s) { text.empty() ? static_cast<void>(s.lost.erase(node)) : static_cast<void>(s.lost[node] = text); });
  }
  void onFailure(const JobFailure& failure) override {
    change([&](SessionState& s) {
      if (!s.failure) s.failure = failure;  // the first cause stands
    });
  }

  void fail(const Error& error) {
    change([&](SessionState& s) {
      s.error = error;
      s.phase = SessionPhase::Over;
    });
  }

  void follow(Launcher& launcher, const std::string& run, const std::stop_token& stop) {
    change([&](SessionState& s) {
      s.run = run;
      s.phase = SessionPhase::Following;
    });
    if (const auto size = launcher.worldSizeOf(run)) change([&](SessionState& s) { s.worldSize = *size; });
    if (const auto total = launcher.totalStepsOf(run)) change([&](SessionState& s) { s.totalSteps = *total; });
    const auto status = launcher.followJob(run, *this, stop);
    if (!status) return fail(status.error());
    take(*status);
    if (status->failed && status->failed->rank >= 0 && !stop.stop_requested()) {
      if (const auto log = launcher.logOf(run, status->failed->rank, kLastBytes)) {
        change([&](SessionState& s) { s.lastLines = lastLinesOf(*log); });
      }
    }
    change([&](SessionState& s) { s.phase = hasEnded(status->state) ? SessionPhase::Over : SessionPhase::Detached; });
  }

  void take(const JobStatus& status) {
    change([&](SessionState& s) {
      s.job = status.state;
      s.isJobKnown = true;
      s.predictedIterationMs = status.predictedIterationMs;
      if (status.failed) s.failure = status.failed;
    });
  }
};

JobSession::JobSession(std::shared_ptr<LoginDesk> desk, QObject* parent)
    : QObject(parent), shared_(std::make_shared<Shared>(std::move(desk))) {}

JobSession::~JobSession() { worker_.request_stop(); }  // and both threads are joined

void JobSession::begin(SessionPhase phase, std::function<void(Launcher&, std::stop_token)> work) {
  Q_ASSERT(!worker_.joinable());
  shared_->change([&](SessionState& s) { s.phase = phase; });
  worker_ = std::jthread([shared = shared_, work = std::move(work)](const std::stop_token& stop) {
    auto launcher = shared->openLauncher();
    if (!launcher) return shared->fail(launcher.error());
    work(*launcher, stop);
  });
}

void JobSession::check(LaunchRequest request) {
  begin(SessionPhase::Checking,
        [shared = shared_, request = std::move(request)](Launcher& launcher, const std::stop_token& stop) {
          const auto rows = launcher.preflight(request, *shared, stop);
          if (!rows) return shared->fail(rows.error());
          shared->change([&](SessionState& s) {
            s.rows = *rows;
            s.phase = SessionPhase::Over;
          });
        });
}

void JobSession::start(LaunchRequest request) {
  shared_->change([&](SessionState& s) {
    s.totalSteps = request.run.steps;
    if (request.plan.predicted) s.predictedIterationMs = milliseconds(request.plan.predicted->iteration);
  });
  begin(SessionPhase::Starting,
        [shared = shared_, request = std::move(request)](Launcher& launcher, const std::stop_token& stop) {
          const auto run = launcher.startJob(request, *shared, stop);
          if (!run) return shared->fail(run.error());
          shared->follow(launcher, *run, stop);
        });
}

void JobSession::attach(const std::string& run) {
  shared_->change([&](SessionState& s) { s.run = run; });
  begin(SessionPhase::Following, [shared = shared_, run](Launcher& launcher, const std::stop_token& stop) {
    // What is known already, with the prediction: followJob would say it only at the end.
    const auto status = launcher.statusOf(run);
    if (!status) return shared->fail(status.error());
    shared->take(*status);
    shared->follow(launcher, run, stop);
  });
}

void JobSession::detach() { worker_.request_stop(); }

void JobSession::stopJob() {
  std::string run;
  bool isStopping = false;
  shared_->change([&](SessionState& s) {
    run = s.run;
    isStopping = s.isStopping;
    s.isStopping = true;
    s.stopError.reset();
  });
  if (isStopping) return;
  if (run.empty()) return detach();
  stopper_ = std::jthread([shared = shared_, run] {
    auto launcher = shared->openLauncher();  // of its own: a history belongs to one thread
    const auto report = launcher ? launcher->stopJob(run) : Result<StopReport>(launcher.error());
    shared->change([&](SessionState& s) {
      s.isStopping = false;
      if (report) s.stopReport = *report;
      else s.stopError = report.error();
    });
  });
}

SessionUpdate JobSession::takeUpdate() {
  const std::lock_guard lock(shared_->mutex);
  SessionUpdate update{.state = shared_->state};
  update.steps.swap(shared_->steps);
  update.evaluations.swap(shared_->evaluations);
  update.logs.swap(shared_->logs);
  return update;
}

}  // namespace evenkeel::gui
