// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/recompute_steps.h"

#include <algorithm>

namespace evenkeel::optimal {
namespace {

struct Choice {
  OpSet ops;
  std::int64_t saved;
  double seconds;
  Bytes transient;
};

/// Every set of ops of the unit, least saved last.
std::vector<Choice> choicesOf(const OpCosts& costs, UnitKind kind) {
  const std::span<const Op> ops = opsOf(kind);
  std::vector<Choice> all;
  for (unsigned mask = 0; mask < 1U << ops.size(); ++mask) {
    Choice choice{};
    for (std::size_t i = 0; i < ops.size(); ++i) choice.ops[static_cast<std::size_t>(ops[i])] = (mask >> i & 1U) != 0;
    const UnitCost cost = unitCost(costs, kind, choice.ops);
    choice.saved = cost.saved.value;
    choice.seconds = (cost.forward + cost.backward).value;
    choice.transient = cost.transient;
    all.push_back(choice);
  }
  return all;
}

void addHull(const OpCosts& costs, UnitKind kind, std::vector<RecomputeStep>& steps) {
  const std::vector<Choice> all = choicesOf(costs, kind);
  const Choice* now = &all.front();  // no op
  while (true) {
    const Choice* next = nullptr;
    double bestRate = 0;
    for (const Choice& choice : all) {
      if (choice.saved >= now->saved) continue;
      const double seconds = std::max(choice.seconds - now->seconds, 1e-15);
      const double rate = static_cast<double>(now->saved - choice.saved) / seconds;
      // Of equal rates the smaller step: more corners, finer mixes.
      if (rate > bestRate * (1 + 1e-12) || (next && rate >= bestRate * (1 - 1e-12) && choice.saved > next->saved)) {
        bestRate = std::max(rate, bestRate);
        next = &choice;
      }
    }
    if (!next) return;
    steps.push_back({kind, next->ops, now->saved - next->saved, std::max(0.0, next->seconds - now->seconds), next->transient});
    now = next;
  }
}

}  // namespace

std::vector<RecomputeStep> recomputeSteps(const OpCosts& costs, std::span<const UnitKind> kinds) {
  std::vector<RecomputeStep> steps;
  for (const UnitKind kind : kinds) addHull(costs, kind, steps);
  // Of one kind the order stays: its rates fall.
  std::ranges::stable_sort(steps, [](const RecomputeStep& a, const RecomputeStep& b) {
    return static_cast<double>(a.freed) * b.seconds > static_cast<double>(b.freed) * a.seconds;
  });
  return steps;
}

}  // namespace evenkeel::optimal
