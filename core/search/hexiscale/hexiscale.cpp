// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/hexiscale/hexiscale.h"

#include <fmt/format.h>

#include "core/search/hexiscale/fair.h"
#include "core/search/own_estimate.h"
#include "core/search/remedy.h"

namespace evenkeel {
namespace {

/// Its partition weighs every pair of machines.
constexpr std::size_t kMostNodes = 1024;
const std::vector<PlannerOptionInfo>& options() {
  static const std::vector<PlannerOptionInfo> known = {
      {"exact", "true|false", "of a recorded case (plan --hexiscale-case DIR): true as shipped, false with fault B1 mended"},
      {"pipelines", "N", "only this number of pipelines"},
      {"micro-batch", "N", "only this number of samples in a micro-batch"}};
  return known;
}

Result<hexiscale::FairOptions> parse(const PlannerOptions& given) {
  if (auto refused = refuseExact(given, "--hexiscale-case DIR"); !refused) return refused.error();
  hexiscale::FairOptions parsed;
  for (const auto& [name, target] : {std::pair{"pipelines", &parsed.pipelines}, {"micro-batch", &parsed.microBatch}}) {
    if (!given.contains(name)) continue;
    const auto value = integerOption(given, name, 1);
    if (!value) return value.error();
    *target = static_cast<int>(std::min<std::int64_t>(*value, kMaxGlobalBatch));
  }
  return parsed;
}

Result<Plan> planHexiscale(const SearchTask& task, SearchObserver& observer, std::stop_token stop) {
  if (auto checked = checkTask("hexiscale", options(), task); !checked) return checked.error();
  const auto parsed = parse(task.options);
  if (!parsed) return parsed.error();
  if (task.problem.cluster.nodes.size() > kMostNodes)
    return infeasible("hexiscale", fmt::format("its partition weighs every pair of machines, of at most {}", kMostNodes));
  SearchSession session("hexiscale", task, observer, stop);
  session.phase("partitions");
  const std::vector<hexiscale::FairPlan> plans = hexiscale::searchFairly(session, *parsed);
  session.phase("pricing");
  const std::size_t taken = takeFirstValid(
      session, plans.size(), [&](std::size_t i) -> const std::vector<Pipeline>& { return plans[i].pipelines; });
  if (!session.incumbent().empty()) session.note("estimate_ms", rounded(1e3 * plans[taken - 1].estimate));
  return withRemedy(session.finish("space exhausted"), task, stop);
}

}  // namespace

Planner hexiscalePlanner() {
  return {
      .name = "hexiscale",
      .summary =
          "HexiScale-style: pipelines of equal compute that keep slow links inside, stages of one tp group, layers by memory",
      .options = options(),
      .deviations = {"B1: the batch is divided anew for every number of pipelines, so all plans train the same samples",
                     "B2: edge weights are never rounded to 0, so fast networks partition like others",
                     "B3: no stage is empty: it takes a layer from the stage that has most",
                     "B4, B5, B6: any number of devices, of pipelines and of devices in a machine; no part is empty",
                     "B7: a tp degree divides heads, KV heads and MLP width",
                     "B8: no random numbers: 1, 2 and 3 sub-parts are enumerated for every pipeline instead of drawn",
                     "its own balanced partition instead of METIS, the same on every machine",
                     "numbers of pipelines and micro-batches, which its user must give, are enumerated: no bound of devices / 5",
                     "batches that do not divide: the first pipelines train a sample more, the last micro-batch is smaller",
                     "everything is recomputed, as the original does, where the runtime can",
                     "the plan is the best by its own estimate (search.estimate_ms) that is valid; it is reported by ours"},
      .plan = planHexiscale};
}

}  // namespace evenkeel
