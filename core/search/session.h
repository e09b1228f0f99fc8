// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "core/cost/evaluate.h"
#include "core/search/constraints.h"
#include "core/search/limits.h"
#include "core/search/search.h"

namespace evenkeel {

/// One run of a planner: clock, stop request, incumbent, counters, events. A planner generates candidates and hands them over;
/// they are assessed in parallel in batches of fixed size and merged by index, so that threads change nothing but the time.
class SearchSession {
 public:
  /// Everything is referenced and must outlive the session, but the constraints.
  SearchSession(std::string planner, const SearchTask& task, SearchObserver& observer, std::stop_token stop,
                Constraints constraints = {});
  ~SearchSession();
  SearchSession(const SearchSession&) = delete;
  SearchSession& operator=(const SearchSession&) = delete;

  /// Its devices have less memory where a reserve is demanded.
  [[nodiscard]] const CostModel& model() const { return model_; }
  [[nodiscard]] const Problem& problem() const { return task_.problem; }
  [[nodiscard]] const SearchTask& task() const { return task_; }
  [[nodiscard]] const Constraints& constraints() const { return constraints_; }
  /// Of the problem under the constraints.
  [[nodiscard]] const Limits& limits() const { return limits_; }
  /// A person, the time limit or the effort ended the search. Thread-safe.
  [[nodiscard]] bool stopped() const;
  /// For a planner that runs another one.
  [[nodiscard]] std::stop_token stopToken() const { return stop_; }
  [[nodiscard]] Budget budgetLeft() const;

  void phase(std::string_view name) { observer_.onPhase(name); }

  /// Runs work(0) .. work(count - 1) on the session's threads; those behind a stop request are left out.
  void parallel(std::size_t count, const std::function<void(std::size_t)>& work) const;

  /// Pipelines that form one plan; empty: the candidate was dropped while it was made, and is counted as pruned.
  using Make = std::function<std::vector<Pipeline>(std::size_t)>;
  /// Assesses candidates 0 .. count - 1. The fastest valid one, and of equal ones the first, becomes the incumbent if it beats
  /// it. `make` must be thread-safe; incumbentTime() does not change while a batch of calls runs.
  void consider(std::size_t count, const Make& make, std::string_view finder);

  /// What is left of the plan that the task starts from, if there is one.
  void considerStart();
  /// One candidate although the search was stopped: for a planner whose best is known at the end only, so that what it found
  /// until then is not lost. Takes one assessment.
  void considerLate(std::vector<Pipeline> pipelines, std::string_view finder);

  /// Improves another valid plan: inside `improve` the incumbent is `start` and whatever it becomes. Afterwards it is the better one
  /// of that and the incumbent of before; observers see no more than that.
  void improveApart(std::vector<Pipeline> start, const std::function<void()>& improve, std::string_view finder);

  /// Of the best plan so far; infinite before the first.
  [[nodiscard]] Seconds incumbentTime() const { return incumbentTime_; }
  [[nodiscard]] const std::vector<Pipeline>& incumbent() const { return incumbent_; }
  /// No valid plan of the problem is reported faster: tells the observer, and stands in the plan, if it is more than was known.
  void raiseBound(Seconds bound);
  [[nodiscard]] Seconds bound() const { return lowerBound_; }
  /// Stands in plan.search.
  void note(const std::string& key, Json value) { notes_[key] = std::move(value); }
  void countCached(std::int64_t count) { counters_.cached += count; }
  /// Candidates that were never made, and why.
  void countPruned(const std::string& reason, std::int64_t count) { counters_.pruned[reason] += count; }
  void point(const SearchPoint& point) { observer_.onPoint(point); }

  /// The incumbent as a plan with predictions, `search` and inputs hash; else Cancelled, or Infeasible with the device that
  /// lacked least among all candidates. `criterion` is what `search.stopped` says when nothing else ended the search.
  [[nodiscard]] Result<Plan> finish(std::string_view criterion);

 private:
  struct Assessment;
  [[nodiscard]] Assessment assess(const std::vector<Pipeline>& pipelines, bool evenIfStopped = false) const;
  void countOutcome(Assessment& result);
  void accept(std::vector<Pipeline> pipelines, Seconds time, std::string_view finder);
  void reportCounters(bool atEnd);
  [[nodiscard]] Seconds elapsed() const;
  [[nodiscard]] Plan planOf(std::vector<Pipeline> pipelines) const;
  [[nodiscard]] Evaluation evaluated(std::vector<Pipeline> pipelines) const;
  [[nodiscard]] Error whyNone() const;

  std::string planner_;
  const SearchTask& task_;
  SearchObserver& observer_;
  std::stop_token stop_;
  std::chrono::steady_clock::time_point begin_;
  Constraints constraints_;
  Limits limits_;
  Cluster cluster_;  // with the reserve
  CostModel model_;
  Seconds workBound_, lowerBound_;
  struct Threads;
  std::unique_ptr<Threads> threads_;

  std::vector<Pipeline> incumbent_;
  Plan incumbentPlan_;  // the same, evaluated
  Seconds incumbentTime_;
  Json incumbents_ = Json::array(), notes_ = Json::object();
  Counters counters_;
  Seconds lastReport_;
  bool isApart_ = false;  // improving a plan that is not the incumbent
  std::vector<Pipeline> closest_;  // the candidate that lacked least memory, while none fits
  std::optional<MemoryLack> closestLack_;
};

/// The value of an integer option, `otherwise` where it is absent.
[[nodiscard]] Result<std::int64_t> integerOption(const PlannerOptions& options, const std::string& name, std::int64_t otherwise);
/// Refuses options that the planner does not list, and problems for which no plan can be right.
[[nodiscard]] Result<void> checkTask(const std::string& planner, std::span<const PlannerOptionInfo> known,
                                     const SearchTask& task);
/// The same, for planners that offer constraints (which `known` lists too); refuses those that leave no device.
[[nodiscard]] Result<Constraints> checkConstrainedTask(const std::string& planner, std::span<const PlannerOptionInfo> known,
                                                       const SearchTask& task);

}  // namespace evenkeel
