// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/search/eth/stage_search.h"

namespace evenkeel {

/// An unordered set of pipelines by their compositions, sorted, largest first.
using Grouping = std::vector<Composition>;

/// Step 1 (algorithms.md 5.1): ways to split the devices into pipelines, each once.
/// Up to kMostDevicesInFull devices all of them, idle devices included. Beyond that all ways to split as many blocks of equal
/// size, and, for each number of pipelines: every type spread evenly over them (single devices, or blocks of 2, 4, 8), and every
/// type for itself in groups of one size per type.
[[nodiscard]] std::vector<Grouping> groupings(const std::vector<TypeFigures>& types, int mostPipelines);
inline constexpr int kMostDevicesInFull = 16;

/// Devices in a fixed order (by type), in blocks: the compositions of all contiguous ranges [first, last) of blocks, for step 7.
class DeviceOrder {
 public:
  explicit DeviceOrder(const std::vector<TypeFigures>& types);
  [[nodiscard]] int blocks() const { return static_cast<int>(typeOfBlock_.size()); }
  [[nodiscard]] Composition range(int first, int last) const;

 private:
  std::size_t typeCount_;
  int blockSize_ = 1;
  std::vector<int> typeOfBlock_;
};

}  // namespace evenkeel
