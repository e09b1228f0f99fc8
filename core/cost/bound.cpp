// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/bound.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/plan/problem.h"

namespace evenkeel {
namespace {

/// Rounding of the sums must not lift a bound above a plan that meets it.
constexpr double kRoundingMargin = 1.0 - 1e-9;

using OpTimes = std::array<double, kOpCount>;

/// Least device seconds of one sample, per op.
OpTimes bestTimes(const CostModel& model, int kind, int mostTp) {
  OpTimes best;
  best.fill(std::numeric_limits<double>::infinity());
  const std::int64_t batch = model.training().globalBatch;
  for (int tp = 1; tp <= mostTp; ++tp) {
    if (model.model().heads % tp != 0) continue;
    for (std::int64_t samples = 1; samples <= batch; samples = samples == batch ? batch + 1 : std::min(4 * samples, batch)) {
      const OpCosts& costs = model.opCosts(kind, tp, samples);
      for (std::size_t op = 0; op < best.size(); ++op) {
        const Seconds time = costs[op].forward + costs[op].backward;
        best[op] = std::min(best[op], time.value * tp / static_cast<double>(samples));
      }
    }
  }
  return best;
}

}  // namespace

Seconds problemLowerBound(const CostModel& model) { return problemLowerBound(model, model.cluster().devices()); }

Seconds problemLowerBound(const CostModel& model, std::span<const DeviceId> devices) {
  struct Kind {
    OpTimes best;
    double devices = 0;
  };
  std::vector<Kind> kinds(static_cast<std::size_t>(model.kindCount()));
  for (const DeviceId device : devices) ++kinds[static_cast<std::size_t>(model.kindOf(device))].devices;
  int mostTp = 1;
  for (const Node& node : model.cluster().nodes) mostTp = std::max(mostTp, static_cast<int>(node.devices.size()));
  for (int kind = 0; kind < model.kindCount(); ++kind) {
    if (kinds[static_cast<std::size_t>(kind)].devices == 0) continue;
    if (obstacleTo(model.model(), model.training().precision, model.typeOfKind(kind)))
      kinds[static_cast<std::size_t>(kind)].devices = 0;
    else kinds[static_cast<std::size_t>(kind)].best = bestTimes(model, kind, mostTp);
  }

  OpTimes perModel{};  // how often a sample passes each op
  for (int unit = 0; unit < model.model().unitCount(); ++unit) {
    for (const Op op : opsOf(model.model().unitKind(unit))) ++perModel[static_cast<std::size_t>(op)];
  }
  double bound = 0;
  for (const Kind& reference : kinds) {
    if (reference.devices == 0) continue;
    double work = 0, rate = 0;
    for (std::size_t op = 0; op < perModel.size(); ++op) work += perModel[op] * reference.best[op];
    for (const Kind& kind : kinds) {
      if (kind.devices == 0) continue;
      double fastest = 0;
      for (std::size_t op = 0; op < perModel.size(); ++op) {
        if (reference.best[op] <= 0) continue;
        fastest =
            kind.best[op] > 0 ? std::max(fastest, reference.best[op] / kind.best[op]) : std::numeric_limits<double>::infinity();
      }
      rate += kind.devices * fastest;
    }
    bound = std::max(bound, static_cast<double>(model.training().globalBatch) * work / rate);
  }
  return {bound * kRoundingMargin};
}

}  // namespace evenkeel
