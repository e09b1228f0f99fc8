// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/plan_maker.h"

#include <algorithm>

#include "core/cost/stage_time.h"
#include "core/search/optimal/assembly.h"
#include "core/search/tp_groups.h"

namespace evenkeel::optimal {
namespace {

constexpr double kPackingTolerance = 5e-4;
/// Plans of equal pipelines that are simulated, of each pool; and of small clusters.
constexpr std::size_t kMostEqual = 6, kMostEqualOfFew = 24;
constexpr int kFewDevices = 64;

}  // namespace

PlanMaker::PlanMaker(SearchSession& session, PlanSpace& space)
    : session_(session),
      space_(space),
      fillingOrders_(fillingOrders(space.model().cluster(), ranksByWayOut(space.model().cluster()))) {}

std::size_t PlanMaker::plansFrom(std::span<const Column> columns, int holders, double least) {
  std::optional<Packed> packed;
  double failed = least;
  for (const double more : {0.0, 0.001, 0.003, 0.006, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.35, 0.6, 1.0, 2.0}) {
    packed = packWhole(columns, space_.amounts(), space_.batch(), least * (1 + more));
    if (packed || session_.stopped()) break;
    failed = least * (1 + more);
  }
  while (packed && packed->time - failed > kPackingTolerance * packed->time && !session_.stopped()) {
    const double middle = (packed->time + failed) / 2;
    if (auto better = packWhole(columns, space_.amounts(), space_.batch(), middle)) packed = std::move(better);
    else failed = middle;
  }
  std::vector<Packed> all;
  if (packed) all.push_back(*packed);
  for (Packed& copies : copiesOfOne(columns, holders)) all.push_back(std::move(copies));
  std::vector<std::vector<Pipeline>> candidates;
  for (const Packed& one : all) {
    if (session_.stopped()) break;
    addPlans(columns, one, candidates);
  }
  session_.consider(
      candidates.size(), [&](std::size_t i) { return candidates[i]; }, "optimal: packed columns");
  if (!packed) return 0;
  std::size_t pipelines = 0;
  for (const auto& [column, copies] : packed->copies) pipelines += static_cast<std::size_t>(copies);
  return pipelines;
}

std::vector<Packed> PlanMaker::copiesOfOne(std::span<const Column> columns, int holders) {
  const StageOptions& options = space_.options(holders);
  const std::vector<double> rates = space_.planSyncRates(kMaxDevices);
  std::vector<Packed> best;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const Column& column = columns[j];
    int most = static_cast<int>(std::min<std::int64_t>(space_.deviceCount(), space_.batch()));
    for (std::size_t k = 0; k < space_.amounts().size(); ++k) {
      if (column.uses[k] > 0) most = std::min(most, space_.amounts()[k] / column.uses[k]);
    }
    const std::optional<int> asked = space_.pipelines();
    for (const int copies : {asked.value_or(1), asked.value_or(most)}) {
      if (copies < 1 || copies > most) continue;
      const std::int64_t each = std::int64_t{copies} * column.microBatch;
      const std::int64_t microBatches = (space_.batch() + each - 1) / each;
      if (microBatches > column.mostMicroBatches) continue;
      double sync = 0;
      for (std::size_t s = 0; s < column.path.size(); ++s) {
        const PathStage& stage = column.path[s];
        const double rate = rates[static_cast<std::size_t>(options.options()[stage.option].kind)];
        const double part = 1.0 - 1.0 / (copies * column.dps[s]);
        sync = std::max(sync, part * rate * static_cast<double>(options.parameters(stage.option, stage.units)));
      }
      best.push_back({column.fill + static_cast<double>(microBatches - 1) * column.pace + sync, {{j, copies}}});
      if (most == 1 || asked) break;
    }
  }
  std::ranges::stable_sort(best, {}, &Packed::time);
  best.resize(std::min(best.size(), space_.deviceCount() <= kFewDevices ? kMostEqualOfFew : kMostEqual));
  return best;
}

void PlanMaker::addPlans(std::span<const Column> columns, const Packed& packed, std::vector<std::vector<Pipeline>>& candidates) {
  std::vector<PathTime> times;
  for (const auto& [column, copies] : packed.copies) times.push_back({columns[column].fill, columns[column].pace});
  const std::vector<Load> loads = balanced(columns, packed, times, space_.batch());
  if (loads.empty()) return;
  const auto place = [&](const std::vector<Load>& as, Neighbours neighbours) {
    const std::size_t first = candidates.size();
    for (const std::vector<int>& ranks : fillingOrders_)
      candidates.push_back(
          placed(space_.model(), space_.options(static_cast<int>(as.size())), space_.limits(), columns, as, neighbours, ranks));
    return first;
  };
  for (const Neighbours neighbours : {Neighbours::Stages, Neighbours::Replicas}) {
    if (neighbours == Neighbours::Replicas && loads.size() == 1) continue;
    const std::vector<Pipeline> pipelines = candidates[place(loads, neighbours)];
    if (pipelines.empty()) continue;
    noteClosedForm(pipelines);
    // Once more, balanced by what the simulation says of them.
    std::vector<PathTime> simulated = times;
    for (std::size_t i = 0; i < packed.copies.size(); ++i) {
      for (std::size_t p = 0; p < loads.size(); ++p) {
        if (loads[p].column != packed.copies[i].first) continue;
        simulated[i] = simulatedTime(space_.model(), pipelines[p]);
        break;
      }
    }
    const std::vector<Load> again = balanced(columns, packed, simulated, space_.batch());
    if (!again.empty() && packed.copies.size() > 1) place(again, neighbours);
  }
}

void PlanMaker::noteClosedForm(const std::vector<Pipeline>& pipelines) {
  if (worstLack(space_.model(), pipelines)) return;
  Seconds slowest;
  for (const Pipeline& pipeline : pipelines)
    slowest = std::max(slowest, evenkeel::closedForm(pipelineTimes(space_.model(), pipeline)));
  closedForm_ = std::min(closedForm_, slowest.value);
}

}  // namespace evenkeel::optimal
