// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/plan/problem.h"

namespace evenkeel {

/// The pipelines of an earlier plan whose devices all exist in the problem (by the names of their nodes, of the same types), with
/// the problem's global batch divided among them as it was. Empty where none is left, or where the model has other units.
/// Whether they fit is not looked at.
[[nodiscard]] std::vector<Pipeline> carriedOver(const Plan& last, const Problem& problem);

/// For a person who asks to start from a plan: InvalidInput where the planner starts from none, or where nothing can be taken
/// over because the plan is of another model.
[[nodiscard]] Result<void> checkStart(std::string_view planner, const Plan& last, const Problem& problem);
/// For the same person: which of the plan's pipelines cannot be carried over, a device that the cluster lacks, and what the planner
/// does instead. Empty: all are carried over.
[[nodiscard]] std::string notCarriedOver(std::string_view planner, const Plan& last, const Problem& problem);

}  // namespace evenkeel
