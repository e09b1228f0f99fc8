// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/compare/compare_runs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/profile/analytic_profile.h"

namespace evenkeel::gui {
namespace {

struct Prediction {
  Evaluation evaluation;
  PlanFacts facts;
  std::shared_ptr<const SliceModel> slices;
};

Prediction predicted(const Plan& plan) {
  const AnalyticProfile profile(plan.model, plan.training);
  Prediction prediction{evaluate(plan, profile, true), {}, {}};
  prediction.facts = planFacts(prediction.evaluation.plan);
  prediction.slices = std::make_shared<const SliceModel>(foldedTimeline(prediction.evaluation.timeline, prediction.facts));
  return prediction;
}

}  // namespace

Timeline foldedTimeline(const Timeline& timeline, const PlanFacts& facts) {
  const auto firstLike = [&](int pipeline) {
    const auto group = std::ranges::find_if(facts.pipelines, [&](const PipelineFacts& p) { return p.contains(pipeline); });
    return group == facts.pipelines.end() ? pipeline : group->first;
  };
  Timeline folded;
  std::map<std::pair<int, int>, int> laneOf;  // of pipeline and stage, in the folded timeline
  for (const Lane& lane : timeline.lanes) {
    if (firstLike(lane.pipeline) != lane.pipeline) continue;
    laneOf[{lane.pipeline, lane.stage}] = static_cast<int>(folded.lanes.size());
    folded.lanes.push_back(lane);
  }
  const auto foldedLane = [&](int lane) {
    const Lane& own = timeline.lanes[static_cast<std::size_t>(lane)];
    return laneOf.at({firstLike(own.pipeline), own.stage});
  };
  for (Span span : timeline.spans) {
    const Lane& own = timeline.lanes[static_cast<std::size_t>(span.lane)];
    if (firstLike(own.pipeline) != own.pipeline) continue;
    span.lane = foldedLane(span.lane);
    if (span.waitsForLane >= 0) span.waitsForLane = foldedLane(span.waitsForLane);
    folded.spans.push_back(span);
  }
  return folded;
}

report::Compared comparedOf(const Contender& contender) {
  report::Compared one{
      contender.planner->name, contender.planner->summary, contender.planner->deviations, contender.evaluation, {},
      contender.search.elapsed};
  if (contender.result && !contender.result->ok()) one.error = contender.result->error();
  if (contender.state == Contender::State::Cancelled)
    one.error = Error{Error::Code::Cancelled, contender.planner->name, "was cancelled before it began", {}};
  return one;
}

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
  Contender& contender = contenders_[static_cast<std::size_t>(running_)];
  contender.search = session_.snapshot();
  contender.result = session_.result();
  if (!contender.result->ok()) return endRunning();
  background_.run([plan = contender.result->value()] { return predicted(plan); },
                  [this](Prediction prediction) {
                    Contender& predicted = contenders_[static_cast<std::size_t>(running_)];
                    predicted.evaluation = std::move(prediction.evaluation);
                    predicted.facts = std::move(prediction.facts);
                    predicted.slices = std::move(prediction.slices);
                    endRunning();
                  });
}

void CompareRuns::endRunning() {
  const int index = std::exchange(running_, -1);
  contenders_[static_cast<std::size_t>(index)].state = Contender::State::Done;
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
  background_.forget();
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
