// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/evaluation.h"

#include "app/cli/describe.h"

namespace evenkeel::cli {

Json toJson(const Evaluation& evaluation) {
  Json json;
  json["valid"] = evaluation.valid();
  json["violations"] = toJson(evaluation.violations);
  const auto& predicted = evaluation.plan.predicted;
  const auto number = [&](double value) { return predicted ? Json(rounded(value)) : Json(nullptr); };
  const PlanPrediction known = predicted.value_or(PlanPrediction{});
  json["iteration_ms"] = number(milliseconds(known.iteration));
  json["closed_form_ms"] = number(milliseconds(evaluation.closedForm));
  json["pipeline_ms"] = number(milliseconds(known.pipeline));
  json["sync_ms"] = number(milliseconds(known.sync));
  json["optimizer_ms"] = number(milliseconds(known.optimizer));
  json["lower_bound_ms"] = number(milliseconds(known.lowerBound));
  json["bubble_fraction"] = number(evaluation.bubbleFraction);
  json["mfu"] = number(known.mfu);
  json["error"] = number(known.error);
  json["peak_bytes"] = Json::object();
  for (const auto& [device, bytes] : evaluation.peakBytes) json["peak_bytes"][evaluation.plan.cluster.nameOf(device)] = bytes.value;
  return json;
}

Json stagesJson(const Evaluation& evaluation) {
  Json stages = Json::array();
  for (std::size_t p = 0; p < evaluation.activity.size(); ++p) {
    for (std::size_t s = 0; s < evaluation.activity[p].size(); ++s) {
      const StageActivity& activity = evaluation.activity[p][s];
      stages.push_back({{"pipeline", p}, {"stage", s}, {"busy_ms", rounded(milliseconds(activity.busy))},
                        {"waiting_ms", rounded(milliseconds(activity.waiting))}, {"send_ms", rounded(milliseconds(activity.sending))}});
    }
  }
  return stages;
}

}  // namespace evenkeel::cli
