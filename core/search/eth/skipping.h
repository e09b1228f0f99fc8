// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "core/search/eth/grouping.h"

namespace evenkeel {

/// What a device type is worth when two groups are compared.
struct Capacity {
  double compute = 0, memory = 0, memoryBandwidth = 0, intra = 0, nic = 0;
  /// At least as good in everything.
  [[nodiscard]] bool covers(const Capacity& other) const;
};
[[nodiscard]] std::vector<Capacity> capacitiesOf(const CostModel& model, const std::vector<TypeFigures>& types);

/// True if every device of `small` can be matched to a device of its own in `large` that covers it: a bipartite matching, as
/// maximum flow between types. O(types^2 x augmenting paths).
[[nodiscard]] bool dominates(const Composition& large, const Composition& small, const std::vector<Capacity>& capacities);

/// Early skipping (algorithms.md 5.1, 5): how fast a group of devices can be at most, from the groups that are known already.
class ThroughputBounds {
 public:
  explicit ThroughputBounds(std::vector<Capacity> capacities) : capacities_(std::move(capacities)) {}

  /// Samples a second of a composition's best pipeline; 0 if it holds no model.
  void learn(const Composition& composition, double throughput);

  /// Samples a second, both, at most.
  struct Bounds {
    /// Deterministic: the least throughput of the known groups that dominate this one; infinite if none does.
    double byDominance = 0;
    /// Approximate: of the known group that is nearest in compute, scaled by the ratio of compute or of memory, whichever is
    /// more; infinite while nothing is known.
    double byScaling = 0;
  };
  /// O(known groups) when it is asked first; remembered until something is learnt.
  [[nodiscard]] const Bounds& of(const Composition& composition);

 private:
  struct Total {
    double compute = 0, memory = 0;
  };
  [[nodiscard]] Total totalOf(const Composition& composition) const;
  [[nodiscard]] double byDominance(const Composition& composition) const;
  [[nodiscard]] double byScaling(const Composition& composition) const;

  std::vector<Capacity> capacities_;
  std::map<Composition, double> known_;
  std::map<Composition, Bounds> asked_;
};

}  // namespace evenkeel
