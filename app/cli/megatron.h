// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace evenkeel::cli {

/// The plan as arguments of Megatron-LM's pretrain_gpt.py (option, value, ... as separate words), with the uneven pipeline as its
/// --pipeline-model-parallel-layout (E embedding, t layer, L loss, | between stages). Megatron-LM trains equal pipelines only: a plan
/// that it cannot express is an error that gives every reason.
[[nodiscard]] Result<std::vector<std::string>> megatronArguments(const Plan& plan);

}  // namespace evenkeel::cli
