// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/plan/violations.h"

namespace evenkeel::cli {

/// "fast/0-1, slow/0": runs of consecutive devices of a node; a long list ends with how many there are.
[[nodiscard]] std::string deviceList(const Cluster& cluster, const std::vector<DeviceId>& devices);

/// The plan in the style of the paper's Table 3: one block a kind of pipeline, one line a stage. Equal pipelines are folded.
[[nodiscard]] std::string describePlan(const Plan& plan);

/// " +- 6 %": how far predictions of this kind were off; empty if that is not known.
[[nodiscard]] std::string errorBand(const PlanPrediction& predicted);

/// "1.84 s/iteration +- 6 %   bound 1.79 s   gap 2.7 %   ..." of a plan with predictions.
[[nodiscard]] std::string headline(const Plan& plan);

/// One line a violation.
[[nodiscard]] std::string describe(const std::vector<Violation>& violations);
[[nodiscard]] Json toJson(const std::vector<Violation>& violations);

}  // namespace evenkeel::cli
