// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/cost/evaluate.h"

namespace evenkeel {

/// One term of a sum, for people. Terms of a deeper level make up the one above them.
struct ExplainedTerm {
  int level = 0;
  std::string what;  // "stage 1 on A100-80-SXM, tp 2: Qkv of 12 units"
  Seconds time;
  std::string because;  // the formula with its numbers, and where the value comes from
};

/// How the iteration time of an evaluated plan comes about: its slowest pipeline, there the stage that sets the pace with its ops
/// and its send, the gradient sync of the device that is done last, the optimizer. The plan's shape must be valid.
[[nodiscard]] std::vector<ExplainedTerm> explain(const CostModel& model, const Evaluation& evaluation);

}  // namespace evenkeel
