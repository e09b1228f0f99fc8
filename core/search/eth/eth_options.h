// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>

#include "core/search/search.h"

namespace evenkeel {

/// Which ops a plan may recompute: each stage its own (the paper's), one set for all stages of the plan, or none.
enum class RecomputeScope { Stage, Global, None };

/// The steps of algorithms.md 5.1 that can be switched off, each to see what it is worth.
struct EthOptions {
  int mostPipelines = 0;
  bool cache = true;               // 4: a composition is balanced once
  bool skip = true;                // 5: groupings that cannot win are left out
  double alpha = 1.5;              // 5: trust in the approximate bound; smaller skips more
  bool ordered = true;             // 6: even groupings first, else as they are generated
  bool dynamicProgramming = true;  // 7
  RecomputeScope recompute = RecomputeScope::Stage;
};

[[nodiscard]] std::span<const PlannerOptionInfo> ethOptionInfos();
/// The options must be known ones. An error names the option and what it takes.
[[nodiscard]] Result<EthOptions> parseEthOptions(const PlannerOptions& options);

}  // namespace evenkeel
