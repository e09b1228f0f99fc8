// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/pipeline_groups.h"

#include <fmt/format.h>

#include <algorithm>

namespace evenkeel::report {
namespace {

bool looksLike(const Cluster& cluster, const Pipeline& a, const Pipeline& b) {
  if (a.localBatch != b.localBatch || a.microBatch != b.microBatch || a.stages.size() != b.stages.size()) return false;
  for (std::size_t s = 0; s < a.stages.size(); ++s) {
    const Stage &x = a.stages[s], &y = b.stages[s];
    if (x.units != y.units || x.tp != y.tp || x.dp != y.dp || x.recompute != y.recompute || x.devices.size() != y.devices.size())
      return false;
    for (std::size_t d = 0; d < x.devices.size(); ++d) {
      if (cluster.typeIndexOf(x.devices[d]) != cluster.typeIndexOf(y.devices[d])) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<PipelineGroup> pipelineGroups(const Plan& plan) {
  std::vector<PipelineGroup> groups;
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    if (!groups.empty() && looksLike(plan.cluster, plan.pipelines[groups.back().first], plan.pipelines[p])) ++groups.back().count;
    else groups.push_back({p, 1});
  }
  return groups;
}

std::string nameOf(const PipelineGroup& group) {
  return group.count == 1 ? fmt::format("pipeline {}", group.first)
                          : fmt::format("pipelines {} to {}, each", group.first, group.first + group.count - 1);
}

}  // namespace evenkeel::report
