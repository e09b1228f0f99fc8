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
  bool cuda = false;  // was built for NVIDIA's cards, not for CPU cores alone
  bool operator==(const RuntimeFeatures&) const = default;
};

/// Of the runtime built from these sources, for CPU cores.
[[nodiscard]] const RuntimeFeatures& ownRuntime();
/// Of its build for a LibTorch with CUDA, where there is one.
[[nodiscard]] RuntimeFeatures ownRuntime(bool cuda);

/// A GPU or another accelerator, not a core of the processor.
[[nodiscard]] bool isCard(const DeviceType& type);

[[nodiscard]] Json toJson(const RuntimeFeatures& features);
[[nodiscard]] Result<RuntimeFeatures> parseFeatures(const Json& json, const std::string& source);

/// True where every device type of the cluster runs here: then a planner keeps to ownRuntime().
[[nodiscard]] bool runsHere(const Cluster& cluster);

/// Why `features` cannot execute the plan: each reason with its place. Empty: it can. The shape must be valid.
[[nodiscard]] std::vector<Violation> notLaunchable(const Plan& plan, const RuntimeFeatures& features);

}  // namespace evenkeel
