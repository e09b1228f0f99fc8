// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/limits.h"

#include <algorithm>
#include <map>

#include "core/plan/features.h"
#include "core/plan/problem.h"

namespace evenkeel {
namespace {

/// Larger micro-batches hold more activations and leave fewer of them to fill the pipeline; nobody trains with more.
constexpr int kMostMicroBatch = 128;

bool divides(const Model& model, int tp) {
  return model.heads % tp == 0 && (model.kvHeads % tp == 0 || tp % model.kvHeads == 0) && model.ffn % tp == 0 &&
         model.paddedVocab() % tp == 0;
}

}  // namespace

Limits limitsOf(const Problem& problem, const Constraints& constraints) {
  Limits limits;
  const bool here = runsHere(problem.cluster);
  limits.recompute = (!here || ownRuntime().recompute) && constraints.recompute;
  limits.mostDp = here ? ownRuntime().maxDp : kMaxDevices;
  int largestGroup = 1;
  std::map<std::pair<int, int>, int> groups;  // (node, type) -> devices
  for (const DeviceId device : problem.cluster.devices()) {
    if (obstacleTo(problem.model, problem.training.precision, problem.cluster.typeOf(device)) || constraints.excludes(device))
      continue;
    limits.devices.push_back(device);
    largestGroup = std::max(largestGroup, ++groups[{device.node, problem.cluster.typeIndexOf(device)}]);
  }
  int mostTp = here ? std::min(largestGroup, ownRuntime().maxTp) : largestGroup;
  mostTp = std::min(mostTp, constraints.mostTp.value_or(mostTp));
  for (int tp = 1; tp <= mostTp; tp *= 2) {
    if (divides(problem.model, tp)) limits.tps.push_back(tp);
  }
  return limits;
}

std::vector<int> microBatchChoices(std::int64_t most) {
  const int last = static_cast<int>(std::min<std::int64_t>(most, kMostMicroBatch));
  std::vector<int> choices;
  for (int b = 1; b <= last; b *= 2) {
    choices.push_back(b);
    if (b >= 2 && b / 2 * 3 <= last) choices.push_back(b / 2 * 3);
  }
  if (choices.back() != last) choices.push_back(last);
  std::ranges::sort(choices);
  const auto [repeated, end] = std::ranges::unique(choices);
  choices.erase(repeated, end);
  return choices;
}

}  // namespace evenkeel
