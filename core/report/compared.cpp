// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/compared.h"

#include <algorithm>

namespace evenkeel::report {

std::string stateOf(const Compared& one) {
  if (one.evaluation) return "planned";
  if (!one.error || one.error->code == Error::Code::Cancelled) return "stopped";
  return one.error->code == Error::Code::Infeasible ? "infeasible" : "failed";
}

std::string reasonOf(const Compared& one) {
  if (!one.error) return {};
  Error error = *one.error;
  if (error.where == one.planner) error.where.clear();
  return error.text();
}

KeyFigures keyFiguresOf(const Evaluation& evaluation) {
  const Plan& plan = evaluation.plan;
  KeyFigures figures;
  if (plan.predicted) {
    figures.iteration = plan.predicted->iteration;
    figures.samplesPerSecond = plan.predicted->samplesPerSecond;
    figures.mfu = plan.predicted->mfu;
    if (plan.predicted->lowerBound.value > 0) figures.gap = plan.predicted->gap();
  }
  figures.bubbleFraction = evaluation.bubbleFraction;
  figures.pipelines = plan.pipelines.size();
  for (const Pipeline& pipeline : plan.pipelines) {
    figures.stages += pipeline.stages.size();
    for (const Stage& stage : pipeline.stages) {
      if (!stage.predicted) continue;
      const MemoryUse& use = stage.predicted->memory;
      figures.worstMemory = std::max(figures.worstMemory, static_cast<double>(use.total().value) /
                                                              static_cast<double>(std::max<std::int64_t>(1, use.capacity.value)));
    }
  }
  figures.usedDevices = plan.usedDevices().size();
  figures.idleDevices = plan.idleDevices().size();
  if (!plan.search.is_object()) return figures;
  if (const auto estimate = plan.search.find("estimate_ms"); estimate != plan.search.end() && estimate->is_number())
    figures.ownEstimate = fromMilliseconds(estimate->get<double>());
  const std::string ended = plan.search.value("stopped", "");
  if (ended == "time limit" || ended == "stop request" || ended == "effort") figures.stopped = ended;
  return figures;
}

std::optional<Seconds> fastestOf(const std::vector<Compared>& all) {
  std::optional<Seconds> best;
  for (const Compared& one : all) {
    if (!one.evaluation || !one.evaluation->plan.predicted) continue;
    const Seconds iteration = one.evaluation->plan.predicted->iteration;
    if (!best || iteration < *best) best = iteration;
  }
  return best;
}

}  // namespace evenkeel::report
