// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <optional>
#include <vector>

#include "app/gui/plan/plan_facts.h"
#include "app/gui/plan/search_session.h"
#include "app/gui/timeline/slice_model.h"
#include "app/gui/widgets/background.h"
#include "core/cost/evaluate.h"
#include "core/report/compared.h"

namespace evenkeel::gui {

/// One of the planners that are compared, and what it came to.
struct Contender {
  enum class State { Waiting, Running, Done, Cancelled };
  const Planner* planner = nullptr;
  State state = State::Waiting;
  SearchSnapshot search;               // at its end
  std::optional<Result<Plan>> result;  // of a Done one
  /// Of a plan; worked out on a thread of its own.
  std::optional<Evaluation> evaluation;  // with its timeline
  PlanFacts facts;
  std::shared_ptr<const SliceModel> slices;  // the timeline with only the first of equal pipelines
};

/// As the report of all planners has it; one that was cancelled before it began is "stopped".
[[nodiscard]] report::Compared comparedOf(const Contender& contender);

/// The timeline with only the first of equal pipelines; who waited for another of them waits for the first.
[[nodiscard]] Timeline foldedTimeline(const Timeline& timeline, const PlanFacts& facts);

/// Runs planners one after the other on the same problem with the same limit, so that each has all cores, and predicts all plans
/// with the same cost model, on a thread of its own.
class CompareRuns final : public QObject {
  Q_OBJECT

 public:
  explicit CompareRuns(QObject* parent = nullptr);

  /// Drops what was there. `request.planner` is ignored; options go only to planners that know them.
  void start(const std::vector<const Planner*>& planners, SearchRequest request);
  /// A waiting one does not begin; a running one ends with the best plan until now.
  void cancel(int index);
  void cancelAll();
  /// Ends and forgets everything.
  void abandon();

  [[nodiscard]] bool isRunning() const { return running_ >= 0; }  // or its plan is being predicted
  [[nodiscard]] int runningIndex() const { return running_; }     // -1: none
  [[nodiscard]] const std::vector<Contender>& contenders() const { return contenders_; }
  [[nodiscard]] SearchSnapshot liveSearch() const { return session_.snapshot(); }  // of the running one
  /// What was searched for.
  [[nodiscard]] const Problem& problem() const { return request_.problem; }
  /// The fastest iteration of all; nothing while no plan is there.
  [[nodiscard]] std::optional<Seconds> best() const;

 signals:
  void changed(int index);  // another state
  void finished();          // none runs or waits any more

 private:
  void startNext();
  void finish();
  void endRunning();

  SearchSession session_;
  Background background_;
  SearchRequest request_;
  std::vector<Contender> contenders_;
  int running_ = -1;
};

}  // namespace evenkeel::gui
