// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace evenkeel::report {

/// Neighbouring pipelines of a plan that differ only in which devices of the same types they use.
struct PipelineGroup {
  std::size_t first = 0, count = 1;
};
[[nodiscard]] std::vector<PipelineGroup> pipelineGroups(const Plan& plan);

/// "pipeline 2"; "pipelines 0 to 7, each".
[[nodiscard]] std::string nameOf(const PipelineGroup& group);

}  // namespace evenkeel::report
