// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/plan/violations.h"

namespace evenkeel {

/// What a runtime can execute. The worker prints it (`evenkeel-worker --features`), planners stay inside it for devices that
/// `run here`, and launch refuses a plan outside of it.
struct RuntimeFeatures {
  int maxTp = 1, maxDp = 1;
  bool recompute = false;
  std::vector<int> zeroStages;
  std::vector<GradientSync> gradientSyncs;
  std::vector<AttentionKernel> attentionKernels;
  std::vector<Precision> precisions;
  std::vector<Family> families;
  bool operator==(const RuntimeFeatures&) const = default;
};

/// Of the runtime built from these sources.
[[nodiscard]] const RuntimeFeatures& ownRuntime();

[[nodiscard]] Json toJson(const RuntimeFeatures& features);
[[nodiscard]] Result<RuntimeFeatures> parseFeatures(const Json& json, const std::string& source);

/// True where every device type of the cluster runs here: then a planner keeps to ownRuntime().
[[nodiscard]] bool runsHere(const Cluster& cluster);

/// Why `features` cannot execute the plan: each reason with its place. Empty: it can. The shape must be valid.
[[nodiscard]] std::vector<Violation> notLaunchable(const Plan& plan, const RuntimeFeatures& features);

}  // namespace evenkeel
