// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/recompute_steps.h"

#include <algorithm>

namespace evenkeel::optimal {
namespace {

/// Limits of the workspace, in equal parts of the most there is.
constexpr std::size_t kLevels = 4;

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

void addHull(std::vector<Choice> all, UnitKind kind, Bytes limit, std::vector<RecomputeStep>& steps) {
  std::erase_if(all, [&](const Choice& choice) { return choice.ops.any() && choice.transient > limit; });
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

std::vector<RecomputeMixes> recomputeMixes(const OpCosts& costs, std::span<const UnitKind> kinds) {
  std::vector<std::vector<Choice>> choices;
  std::vector<Bytes> transients;
  for (const UnitKind kind : kinds) {
    choices.push_back(choicesOf(costs, kind));
    for (const Choice& choice : choices.back()) transients.push_back(choice.transient);
  }
  std::ranges::sort(transients);
  std::vector<RecomputeMixes> mixes;
  Bytes before;
  for (std::size_t level = 1; level <= kLevels; ++level) {
    const Bytes limit{level == kLevels
                          ? transients.back().value
                          : transients.back().value * static_cast<std::int64_t>(level) / static_cast<std::int64_t>(kLevels)};
    const auto next = std::ranges::upper_bound(transients, before);
    if (!mixes.empty() && (next == transients.end() || *next > limit)) continue;  // nothing new
    RecomputeMixes& mix = mixes.emplace_back();
    mix.transient = mixes.size() == 1 ? 0 : next->value;
    for (std::size_t k = 0; k < kinds.size(); ++k) addHull(choices[k], kinds[k], limit, mix.steps);
    // Of one kind the order stays: its rates fall.
    std::ranges::stable_sort(mix.steps, [](const RecomputeStep& a, const RecomputeStep& b) {
      return static_cast<double>(a.freed) * b.seconds > static_cast<double>(b.freed) * a.seconds;
    });
    before = limit;
  }
  return mixes;
}

}  // namespace evenkeel::optimal
