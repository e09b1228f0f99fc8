// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/search/search.h"

namespace evenkeel {

/// What a person demands of plans beyond validity (--planner-option), one type for all planners that offer it.
struct Constraints {
  std::optional<int> pipelines;    // exactly so many
  std::optional<int> mostTp;       // tensor parallelism of any stage
  bool recompute = true;           // false: nowhere
  std::vector<DeviceId> excluded;  // stay idle; sorted
  std::optional<double> reserve;   // part of each device's memory that stays free, more than validity asks
  std::vector<std::string> given;  // "pipelines=3", in the order of the names

  [[nodiscard]] bool any() const { return !given.empty(); }
  [[nodiscard]] bool excludes(DeviceId device) const;
  /// The memory aside, which is the cost model's to judge.
  [[nodiscard]] bool allow(std::span<const Pipeline> pipelines) const;
};

/// pipelines=N, max_tp=N, recompute=..., exclude=NAME[,NAME], reserve=F, as a planner lists them beside its own options.
[[nodiscard]] std::span<const PlannerOptionInfo> constraintInfos();
/// Of all options those that are constraints; "recompute" counts with the word "none". An error names the option.
[[nodiscard]] Result<Constraints> constraintsFrom(const PlannerOptions& options, const Cluster& cluster);

}  // namespace evenkeel
