// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/compare/compare_runs.h"

#include <algorithm>

#include "core/profile/analytic_profile.h"

namespace evenkeel::gui {
namespace {

PlannerOptions optionsFor(const Planner& planner, const PlannerOptions& all) {
  PlannerOptions own;
  for (const auto& [name, value] : all) {
    if (std::ranges::find(planner.options, name, &PlannerOptionInfo::name) != planner.options.end()) own.emplace(name, value);
  }
  return own;
}

Evaluation evaluated(const Plan& plan) {
  const AnalyticProfile profile(plan.model, plan.training);
  return evaluate(plan, profile, true);
}

}  // namespace

CompareRuns::CompareRuns(QObject* parent) : QObject(parent) {
  connect(&session_, &SearchSession::finished, this, &CompareRuns::finish);
}

void CompareRuns::start(const std::vector<const Planner*>& planners, SearchRequest request) {
  abandon();
  request_ = std::move(request);
  for (const Planner* planner : planners) contenders_.push_back({planner, Contender::State::Waiting, {}, {}, {}});
  startNext();
}

void CompareRuns::startNext() {
  const auto next = std::ranges::find(contenders_, Contender::State::Waiting, &Contender::state);
  running_ = next == contenders_.end() ? -1 : static_cast<int>(next - contenders_.begin());
  if (running_ < 0) {
    emit finished();
    return;
  }
  next->state = Contender::State::Running;
  SearchRequest request = request_;
  request.planner = next->planner;
  request.options = optionsFor(*next->planner, request_.options);
  session_.start(std::move(request));
  emit changed(running_);
}

void CompareRuns::finish() {
  const int index = running_;
  Contender& contender = contenders_[static_cast<std::size_t>(index)];
  contender.state = Contender::State::Done;
  contender.search = session_.snapshot();
  contender.result = session_.result();
  if (contender.result->ok()) contender.evaluation = evaluated(contender.result->value());
  running_ = -1;
  emit changed(index);
  startNext();
}

void CompareRuns::cancel(int index) {
  Contender& contender = contenders_[static_cast<std::size_t>(index)];
  if (index == running_) return session_.stop();
  if (contender.state != Contender::State::Waiting) return;
  contender.state = Contender::State::Cancelled;
  emit changed(index);
}

void CompareRuns::cancelAll() {
  for (int i = 0; i < static_cast<int>(contenders_.size()); ++i) {
    if (i != running_) cancel(i);
  }
  session_.stop();
}

void CompareRuns::abandon() {
  session_.abandon();
  running_ = -1;
  contenders_.clear();
}

std::optional<Seconds> CompareRuns::best() const {
  std::optional<Seconds> best;
  for (const Contender& contender : contenders_) {
    if (contender.evaluation && (!best || contender.evaluation->plan.predicted->iteration < *best))
      best = contender.evaluation->plan.predicted->iteration;
  }
  return best;
}

}  // namespace evenkeel::gui
