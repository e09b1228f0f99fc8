// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/metis/metis.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/plan/violations.h"
#include "core/search/metis/fair.h"
#include "core/search/metis/published.h"
#include "core/search/own_estimate.h"
#include "core/search/remedy.h"

namespace evenkeel {
namespace {

/// The plan is the first of these that is valid; the estimator's best ones are rarely wrong about memory.
constexpr std::size_t kMostTried = 32;
/// Of the public planner's plans; most of those that it likes best lose layers or do not fit.
constexpr std::size_t kMostKept = 20'000;
constexpr int kSamplesAsPublished = 16;
/// What a device has where memory is ignored.
constexpr Bytes kBoundless{std::int64_t{1} << 50U};

const std::vector<PlannerOptionInfo>& options() {
  static const std::vector<PlannerOptionInfo> known = {
      {"exact", "true|false", "true: public Metis with its faults, on a recorded case (plan --metis-case DIR --profile DIR)"},
      {"variance", "V", "least group of devices, in units of devices / stages; 1 unless said"},
      {"permute", "N", "groups that are permuted one by one; 4 unless said"},
      {"memory", "count|ignore",
       "ignore: devices of boundless memory, the paper's line of that name; the plan's cluster says so"},
      {"samples", "N", "most samples of a replica in one micro-batch; 64 unless said, 16 as published"},
      {"faults", "mend|keep",
       "keep: public Metis as it is, asked about this problem; the first of its plans that can be run"}};
  return known;
}

/// What runs here may have no replicas inside a stage.
bool isExecutable(const std::vector<Pipeline>& pipelines, const Limits& limits) {
  return std::ranges::all_of(pipelines, [&](const Pipeline& pipeline) {
    return std::ranges::all_of(pipeline.stages, [&](const Stage& stage) { return stage.dp <= limits.mostDp; });
  });
}

Result<metis::FairOptions> parse(const PlannerOptions& given) {
  metis::FairOptions parsed;
  if (auto refused = refuseExact(given, "--metis-case DIR --profile DIR"); !refused) return refused.error();
  if (const auto variance = given.find("variance"); variance != given.end()) {
    const auto value = parseNumber<double>(variance->second);
    if (!value || !(*value > 0))
      return invalidInput("--planner-option variance", fmt::format("is \"{}\"", variance->second), "expected a number above 0");
    parsed.variance = *value;
  }
  if (const auto faults = given.find("faults"); faults != given.end() && faults->second != "mend") {
    if (faults->second != "keep")
      return invalidInput("--planner-option faults", fmt::format("is \"{}\"", faults->second), "expected mend or keep");
    parsed.mostSamples = kSamplesAsPublished;
  }
  if (const auto memory = given.find("memory"); memory != given.end() && memory->second != "count" && memory->second != "ignore")
    return invalidInput("--planner-option memory", fmt::format("is \"{}\"", memory->second), "expected count or ignore");
  const auto permute = integerOption(given, "permute", parsed.mostPermuted);
  if (!permute) return permute.error();
  parsed.mostPermuted = static_cast<int>(std::min<std::int64_t>(*permute, 12));
  const auto samples = integerOption(given, "samples", parsed.mostSamples);
  if (!samples) return samples.error();
  parsed.mostSamples = static_cast<int>(std::min<std::int64_t>(*samples, 1 << 20));
  return parsed;
}

/// The cheapest by its own estimate, a plan that it lists twice twice.
Result<std::vector<metis::OriginalPlan>> plansAsPublished(SearchSession& session, const metis::Published& published) {
  std::vector<metis::OriginalPlan> plans;
  const auto trim = [&] {
    std::ranges::stable_sort(plans, {}, &metis::OriginalPlan::total);
    if (plans.size() > kMostKept) plans.erase(plans.begin() + kMostKept, plans.end());
  };
  metis::searchAsOriginal(
      published.given(), [&] { return session.stopped(); },
      [&](metis::OriginalPlan&& plan) {
        plans.push_back(std::move(plan));
        if (plans.size() >= 2 * kMostKept) trim();
      });
  trim();
  if (plans.empty() && !session.stopped()) return infeasible("metis", "public Metis finds no plan", "faults=mend");
  return plans;
}

Result<Plan> planAsPublished(SearchSession& session, const metis::FairOptions& options) {
  const auto published = metis::Published::of(session.model(), session.limits(), options);
  if (!published) return published.error();
  session.phase("device groups");
  const auto plans = plansAsPublished(session, *published);
  if (!plans) return plans.error();
  session.phase("pricing");
  Plan plan{.cluster = session.problem().cluster, .model = session.problem().model, .training = session.problem().training};
  const std::size_t taken = takeFirstValid(session, plans->size(), [&](std::size_t i) -> const std::vector<Pipeline>& {
    plan.pipelines = published->pipelinesOf((*plans)[i]);
    if (plan.pipelines.empty()) session.countPruned("loses layers", 1);
    else if (!shapeViolations(plan).empty() || !isExecutable(plan.pipelines, session.limits())) {
      session.countPruned("cannot be run", 1);
      plan.pipelines.clear();
    }
    return plan.pipelines;
  });
  auto found = session.finish("space exhausted");
  if (found) {
    found->search["estimate_ms"] = rounded((*plans)[taken - 1].total);
    found->search["rank"] = taken;
  }
  return found;
}

Result<Plan> planMetis(const SearchTask& given, SearchObserver& observer, std::stop_token stop) {
  if (auto checked = checkTask("metis", options(), given); !checked) return checked.error();
  const auto parsed = parse(given.options);
  if (!parsed) return parsed.error();
  SearchTask task = given;
  if (const auto memory = task.options.find("memory"); memory != task.options.end() && memory->second == "ignore") {
    for (DeviceType& type : task.problem.cluster.deviceTypes) type.memory = kBoundless;
  }
  SearchSession session("metis", task, observer, stop);
  if (const auto faults = task.options.find("faults"); faults != task.options.end() && faults->second == "keep")
    return planAsPublished(session, *parsed);
  session.phase("device groups");
  const std::vector<metis::FairPlan> plans = metis::searchFairly(session, *parsed, kMostTried);
  session.phase("pricing");
  const std::size_t taken = takeFirstValid(
      session, plans.size(), [&](std::size_t i) -> const std::vector<Pipeline>& { return plans[i].pipelines; });
  auto plan = session.finish("space exhausted");
  if (plan) plan->search["estimate_ms"] = rounded(milliseconds(plans[taken - 1].estimate));
  return withRemedy(std::move(plan), task, stop);
}

}  // namespace

Planner metisPlanner() {
  return {
      .name = "metis",
      .summary = "Metis-style: one pipeline over unlike devices, groups of powers of two, layers balanced by speed",
      .options = options(),
      .deviations = {"B1: every stage is priced, for every order of the types",
                     "B3, B12: gradients and activations cross the links that are drawn, not those inside a node",
                     "B4: any number of devices; those that fill no list of groups stay idle",
                     "B5, B6: orders of types and layer weights do not depend on hash seeds or on the first file read",
                     "B7: no layer is lost and no stage is empty",
                     "B8, B19: a tp group is one type in one node, whatever the sizes of the nodes",
                     "B11: op costs have no unexplained rest, so nothing is dropped for lack of it",
                     "B15: any global batch; what does not divide makes a smaller last micro-batch",
                     "B18: memory is that of the fullest device with its micro-batches in flight",
                     "equal replicas in all stages are written as pipelines",
                     "the plan is the best by Metis's own estimate (search.estimate_ms) that is valid; it is reported by ours"},
      .plan = planMetis};
}

}  // namespace evenkeel
