// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/problem.h"
#include "core/profile/profile.h"

namespace evenkeel {

/// When a search ends. A search that ends by its own criterion gives the same plan for any thread count; one ended by the time
/// limit or by a person says so in plan.search["stopped"].
struct Budget {
  std::optional<Seconds> timeLimit;
  std::optional<double> gap;           // of the reported number
  std::optional<std::int64_t> effort;  // evaluations
  std::uint64_t seed = 1;
  int threads = 0;  // 0: all cores
};

using PlannerOptions = std::map<std::string, std::string>;  // --planner-option K=V

/// A valid plan, strictly faster than the one before; its predictions are filled.
struct Incumbent {
  Plan plan;
  Seconds found;       // since the search began
  std::string finder;  // "eth: three-phase balance"
};

struct Counters {
  std::int64_t evaluated = 0, cached = 0;
  std::map<std::string, std::int64_t> pruned;  // reason -> count
};

/// One grouping that a planner looked at: how unevenly it spreads compute, as variances over squared means, and how fast it is by
/// the planner's estimate. The paper plots these.
struct SearchPoint {
  int pipelines = 0;
  double interVariance = 0, intraVariance = 0;  // between pipelines; between the devices of a pipeline
  double samplesPerSecond = 0;
};

/// An observer is told, never asked: values only, one call at a time, from the thread that called the planner.
struct SearchObserver {
  virtual ~SearchObserver() = default;
  virtual void onPhase(std::string_view) {}  // in order, each once
  virtual void onIncumbent(const Incumbent&) {}
  virtual void onBound(Seconds) {}             // no plan can be reported faster; never decreases
  virtual void onCounters(const Counters&) {}  // at most ten times a second, and once at the end
  virtual void onPoint(const SearchPoint&) {}
};

struct SearchTask {
  Problem problem;
  const Profile* profile = nullptr;  // not owned, never null
  Budget budget;
  PlannerOptions options;
  /// An earlier plan of about this problem, for planners that start from one (optimal, eth). Not owned, may be null; must outlive
  /// the search.
  const Plan* start = nullptr;
};

/// One value that a planner's option takes, for --help and for errors.
struct PlannerOptionInfo {
  std::string name, values, meaning;
};

/// A planner as the catalogue lists it. `plan` returns a valid plan with predicted, search and inputsSha256 filled, or why there
/// is none (Infeasible: which device lacks how much and the smallest change that fits; InvalidInput: an unknown option).
/// After a stop request it returns within 50 ms: the best plan so far, or Cancelled if there is none.
struct Planner {
  std::string name, summary;
  std::vector<PlannerOptionInfo> options;
  std::vector<std::string> deviations;  // from the original that it follows
  std::function<Result<Plan>(const SearchTask&, SearchObserver&, std::stop_token)> plan;
};

/// Those of the options that this planner knows: where several search, others are for the others.
[[nodiscard]] PlannerOptions optionsFor(const Planner& planner, const PlannerOptions& options);

/// All planners, in the order in which they are shown.
[[nodiscard]] std::span<const Planner> planners();
/// The planner of that name, or an error that lists the names.
[[nodiscard]] Result<const Planner*> plannerNamed(std::string_view name);

}  // namespace evenkeel
