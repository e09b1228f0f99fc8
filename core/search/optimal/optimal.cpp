// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/optimal.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/cost/bound.h"
#include "core/search/eth/eth.h"
#include "core/search/eth/polish.h"
#include "core/search/hexiscale/hexiscale.h"
#include "core/search/metis/metis.h"
#include "core/search/optimal/column_search.h"
#include "core/search/optimal/every_plan.h"
#include "core/search/optimal/fewer_devices.h"
#include "core/search/optimal/other_devices.h"
#include "core/search/optimal/sync_rates.h"
#include "core/search/remedy.h"
#include "core/search/session.h"
#include "core/search/uniform/uniform.h"

namespace evenkeel {
namespace optimal {
namespace {

/// Rounds of prices for the closed form, and with sync.
constexpr int kClosedFormRounds = 5, kReportedRounds = 3;
constexpr double kClosedFormTolerance = 1e-3, kReportedTolerance = 2e-3;
constexpr std::int64_t kMostPaths = 3000, kMostPathsOfProof = 4000;
/// Up to so many devices the other planners' plans are candidates too, and devices are exchanged.
constexpr int kFewDevices = 64;
/// Up to so many eth is asked where the search by prices did not do well by its own measure: with few pipelines its columns hardly
/// fill the cluster.
constexpr int kDevicesForEth = 256;
constexpr double kPoorGap = 0.03;
/// Metis tries each order of many groups: it is asked on so few devices only.
constexpr int kDevicesForMetis = 16;
/// So few devices are planned in every way.
constexpr int kDevicesForEveryPlan = 6;
/// Plans within this factor of the best are improved too.
constexpr double kWorthImproving = 1.1;
/// eth is asked again for each list of idle devices on so few devices only: a search of seconds would become one of a quarter minute.
constexpr int kDevicesForEthAgain = 24;

/// A part of the samples takes at least that part of the time, wherever it can be asked.
bool partsShrink(const StageOptions& options) {
  const std::vector<StageOption>& all = options.options();
  const int count = options.unitCount();
  for (std::size_t o = 1; o < all.size(); ++o) {
    if (all[o].kind != all[o - 1].kind || all[o].tp != all[o - 1].tp) continue;
    for (const UnitRange units : {UnitRange{0, 1}, UnitRange{1, 2}, UnitRange{2, 3}, UnitRange{count - 1, count}}) {
      const auto perSample = [&](std::size_t option) {
        return options.work(option, units) / static_cast<double>(all[option].samples);
      };
      if (perSample(o) > perSample(o - 1) * (1 + 1e-9)) return false;
    }
  }
  return true;
}

class OptimalSearch {
 public:
  OptimalSearch(SearchSession& session, std::optional<double> gap)
      : session_(session),
        gap_(gap),
        space_(session.model(), session.limits(), session.constraints().pipelines),
        maker_(session, space_),
        columns_(session, space_, maker_) {}

  /// What ended it.
  std::string_view run() {
    session_.considerStart();
    session_.phase("first plans");
    const Plan* const start = session_.task().start;
    if (start == nullptr || !columns_.startFrom(*start)) columns_.chooseHolders();
    if (session_.stopped()) return kExhausted;
    session_.phase("prices");
    columns_.improve(Aim::ClosedForm, kClosedFormRounds);
    columns_.improveForIncumbent(kClosedFormRounds);
    proveClosedForm();
    session_.phase("bound");
    prove();
    if (isGapReached()) return kGapReached;
    session_.phase("sync");
    columns_.improve(Aim::Reported, kReportedRounds);
    const bool isFew = space_.deviceCount() <= kFewDevices;
    const std::vector<Pipeline> own = session_.incumbent();
    const Seconds ownTime = session_.incumbentTime();
    const bool isPoor = space_.deviceCount() <= kDevicesForEth && closedFormGap() > kPoorGap;
    if (isFew || isPoor || session_.incumbent().empty()) {
      session_.phase("other planners");
      considerUniformGrid(session_);
      if (isFew || isPoor) considerPlanner(ethPlanner(), session_.task().options);
      if (isFew) {
        if (!session_.constraints().any()) considerPlanner(hexiscalePlanner(), {});
        if (!session_.constraints().any() && space_.deviceCount() <= kDevicesForMetis) considerPlanner(metisPlanner(), {});
      }
    }
    if (isFew) tryFewerDevices();
    if (isGapReached()) return kGapReached;
    // Improved, it may still be the best.
    if (!own.empty() && own != session_.incumbent() && ownTime <= kWorthImproving * session_.incumbentTime()) others_.push_back(own);
    session_.phase("polish");
    polish(session_);
    if (isFew) {
      tryOtherDevices(session_, space_.limits());
      polish(session_);
      improveOthers();
    }
    if (space_.deviceCount() <= kDevicesForEveryPlan) {
      session_.phase("every plan");
      tryEveryPlan(session_, space_, maker_);
    }
    return isGapReached() ? kGapReached : kExhausted;
  }

  /// How well the search did by its own measure.
  void noteClosedForm() const {
    session_.note(PlanSpace::kPricesField, space_.toJson(columns_.prices()));
    const double closedForm = maker_.closedForm();
    if (closedFormBound_ <= 0 || closedForm == std::numeric_limits<double>::infinity()) return;
    session_.note("closed_form_ms", rounded(closedForm * 1e3));
    session_.note("closed_form_bound_ms", rounded(closedFormBound_ * 1e3));
    session_.note("closed_form_gap", rounded(closedFormGap()));
  }

 private:
  static constexpr std::string_view kGapReached = "gap reached", kExhausted = "columns exhausted";

  /// A plan of another planner may lie outside of what this one searches.
  [[nodiscard]] double closedFormGap() const { return std::max(0.0, 1 - closedFormBound_ / maker_.closedForm()); }

  [[nodiscard]] bool isGapReached() const {
    return gap_ && !session_.incumbent().empty() && 1 - session_.bound() / session_.incumbentTime() <= *gap_;
  }

  [[nodiscard]] PriceSearch::Limits limits(double tolerance, double enough, std::int64_t mostPaths) const {
    return {.tolerance = tolerance, .enough = enough, .atLeast = 0, .mostPaths = mostPaths, .stopped = [this] {
              return session_.stopped();
            }};
  }

  void proveClosedForm() {
    const StageOptions options = space_.planBoundOptions();
    PriceSearch search(options, space_.resources(), Measure::ClosedForm, space_.batch(), space_.deviceCount(), {});
    closedFormBound_ =
        search.run({.prices = columns_.prices()}, limits(kClosedFormTolerance, maker_.closedForm(), kMostPaths), {}).bound;
  }

  /// No plan is reported faster: the least time of a schedule that does what the prices ask, and the optimizer. Of the sync only
  /// what a ring inside a node could take, which is left out.
  void prove() {
    const StageOptions options = space_.boundOptions();
    PriceSearch search(options, space_.resources(), Measure::Schedule, space_.batch(), space_.deviceCount(),
                       syncRates(space_.model(), space_.limits().devices, Purpose::Bound, Rings::InNode, 1));
    const Ask ask{.prices = columns_.prices(), .ragged = true, .partsShrink = partsShrink(options)};
    const double bound = search.run(ask, limits(kReportedTolerance, session_.incumbentTime().value, kMostPathsOfProof), {}).bound;
    if (bound < std::numeric_limits<double>::infinity()) session_.raiseBound({bound});
  }

  /// Another planner as one more heuristic, so that it is never the better one.
  void considerPlanner(const Planner& planner, const PlannerOptions& options) {
    SearchObserver nobody;
    const SearchTask task{session_.problem(), session_.task().profile, session_.budgetLeft(), options};
    const auto plan = planner.plan(task, nobody, session_.stopToken());
    if (!plan || session_.stopped()) return;
    session_.consider(
        1, [&](std::size_t) { return plan->pipelines; }, "optimal: plan of " + planner.name);
    if (plan->predicted->iteration <= kWorthImproving * session_.incumbentTime()) others_.push_back(plan->pipelines);
    maker_.noteClosedForm(plan->pipelines);
  }

  /// What is nearly as good may become better than the best: moves of single units and devices lead elsewhere from there.
  void improveOthers() {
    for (const std::vector<Pipeline>& start : others_) {
      if (session_.stopped()) return;
      session_.improveApart(
          start,
          [&] {
            polish(session_);
            tryOtherDevices(session_, space_.limits());
            polish(session_);
          },
          "optimal: another plan improved");
    }
  }

  /// The same search without some devices, where the others could win by their work: what a slow link costs, the search over all
  /// of them sees as an average only.
  void tryFewerDevices() {
    session_.phase("fewer devices");
    for (const std::vector<DeviceId>& idle : worthLeavingIdle(session_.problem().cluster, space_.limits())) {
      if (session_.stopped()) return;
      Constraints constraints = session_.constraints();
      constraints.excluded.insert(constraints.excluded.end(), idle.begin(), idle.end());
      std::ranges::sort(constraints.excluded);
      const Limits limits = limitsOf(session_.problem(), constraints);
      if (limits.tps.empty() || problemLowerBound(session_.model(), limits.devices) >= session_.incumbentTime()) continue;
      PlanSpace space(session_.model(), limits, constraints.pipelines);
      PlanMaker maker(session_, space);
      ColumnSearch columns(session_, space, maker);
      columns.chooseHolders();
      columns.improve(Aim::ClosedForm, kClosedFormRounds);
      columns.improve(Aim::Reported, kReportedRounds);
      if (!session_.incumbent().empty()) maker_.noteClosedForm(session_.incumbent());
      if (space_.deviceCount() > kDevicesForEthAgain) continue;
      PlannerOptions options = session_.task().options;
      std::string& names = options["exclude"];
      for (const DeviceId device : idle) names += (names.empty() ? "" : ",") + session_.problem().cluster.nameOf(device);
      considerPlanner(ethPlanner(), options);
    }
  }

  SearchSession& session_;
  std::optional<double> gap_;
  PlanSpace space_;
  PlanMaker maker_;
  ColumnSearch columns_;
  std::vector<std::vector<Pipeline>> others_;  // other planners' plans that are worth improving
  double closedFormBound_ = 0;
};

const std::vector<PlannerOptionInfo>& optionInfos() {
  static const std::vector<PlannerOptionInfo> known = [] {
    std::vector<PlannerOptionInfo> all(constraintInfos().begin(), constraintInfos().end());
    all.push_back({"recompute", "stage|none", "ops that are recomputed: each stage its own, none"});
    return all;
  }();
  return known;
}

Result<Plan> plan(const SearchTask& task, SearchObserver& observer, std::stop_token stop) {
  auto constraints = checkConstrainedTask("optimal", optionInfos(), task);
  if (!constraints) return constraints.error();
  if (const auto found = task.options.find("recompute");
      found != task.options.end() && found->second != "stage" && found->second != "none")
    return invalidInput("--planner-option recompute", fmt::format("is \"{}\"", found->second), "expected one of stage, none");
  SearchSession session("optimal", task, observer, stop, *std::move(constraints));
  OptimalSearch search(session, task.budget.gap);
  const std::string_view criterion = search.run();
  search.noteClosedForm();
  return withRemedy(session.finish(criterion), task, stop);
}

}  // namespace
}  // namespace optimal

Planner optimalPlanner() {
  return {.name = "optimal",
          .summary = "ours: priced pipelines packed into the cluster, with a bound on how far from the best the plan can be",
          .options = optimal::optionInfos(),
          .deviations =
              {"the closed-form gap speaks of tp in powers of two, replicas that take 1, 2, 3, 4, 6, 8, 12, ... samples and stages that "
               "have room for full micro-batches; "
               "the bound of the reported number of every valid plan",
               "up to 64 devices the plans of uniform, eth and hexiscale are candidates too (up to 16 those of metis), and plans that "
               "leave types or slow nodes idle; up to 256 devices those of uniform and eth where its own gap is above 3 %",
               "up to 6 devices and 12 units every plan is tried (replicas of unlike types too), as far as a fixed number of steps goes"},
          .plan = optimal::plan};
}

}  // namespace evenkeel
