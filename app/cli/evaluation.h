// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/cost/evaluate.h"

namespace evenkeel::cli {

/// What `evaluate --json` says of one plan. Numbers are null where the plan's shape is wrong.
[[nodiscard]] Json toJson(const Evaluation& evaluation);

/// Busy, waiting and sending time of every stage.
[[nodiscard]] Json stagesJson(const Evaluation& evaluation);

}  // namespace evenkeel::cli
