// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/search_session.h"

#include <sys/resource.h>

#include "core/profile/analytic_profile.h"

namespace evenkeel::gui {
namespace {

constexpr int kNiceness = 10;  // the window keeps its turn on a machine that searches with all cores

}  // namespace

struct SearchSession::Run {
  int number = 0;
  SearchBoard board;
  std::optional<BoardWriter> writer;
  std::jthread thread;
};

SearchSession::SearchSession(QObject* parent) : QObject(parent) {}
SearchSession::~SearchSession() = default;  // jthread: asks to stop and joins

void SearchSession::start(SearchRequest request) {
  abandon();
  run_ = std::make_unique<Run>();
  run_->number = ++number_;
  run_->board.begin(request.planner->name, request.budget.timeLimit);
  run_->writer.emplace(run_->board);
  result_.reset();
  isRunning_ = true;
  run_->thread = std::jthread([this, number = number_, run = run_.get(), request = std::move(request)](const std::stop_token& stop) {
    ::setpriority(PRIO_PROCESS, 0, kNiceness);  // of this thread and of those that it starts; a refusal costs only comfort
    const AnalyticProfile profile(request.problem.model, request.problem.training);
    auto plan = request.planner->plan({request.problem, &profile, request.budget, request.options}, *run->writer, stop);
    run->board.end(run->writer->elapsed());
    QMetaObject::invokeMethod(
        this, [this, number, plan = std::move(plan)]() mutable { finish(number, std::move(plan)); }, Qt::QueuedConnection);
  });
  emit started();
}

void SearchSession::replay(const QString& file) {
  abandon();
  run_ = std::make_unique<Run>();
  emit started();
  finish(++number_, replayEvents(file.toStdString(), run_->board));
}

void SearchSession::stop() {
  if (isRunning_) run_->thread.request_stop();
}

void SearchSession::abandon() {
  ++number_;
  if (isRunning_) {
    run_->thread.request_stop();
    abandoned_.push_back(std::move(run_));
  }
  run_.reset();
  isRunning_ = false;
  result_.reset();
}

SearchSnapshot SearchSession::snapshot() const {
  if (!run_) return {};
  return run_->board.read(run_->writer ? run_->writer->elapsed() : Seconds{});
}

void SearchSession::finish(int number, Result<Plan> result) {
  if (number != number_) {
    std::erase_if(abandoned_, [number](const std::unique_ptr<Run>& run) { return run->number == number; });
    return;
  }
  isRunning_ = false;
  result_ = std::move(result);
  emit finished();
}

int nextSearchJob() {
  static int last = 1'000'000;
  return ++last;
}

}  // namespace evenkeel::gui
