// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/comm/comm.h"

namespace evenkeel {

/// Elements [first, last) of a flat tensor.
struct FlatRange {
  std::int64_t first = 0, last = 0;
  bool operator==(const FlatRange&) const = default;
  [[nodiscard]] std::int64_t size() const { return last - first; }
};

/// Part `part` of `parts` of a flat tensor: equal ones, but the last may be smaller or empty.
[[nodiscard]] FlatRange partOf(std::int64_t elements, std::size_t part, std::size_t parts);

// What c10d's Gloo lacks, as rings over transfers. `flat` is contiguous with one dimension and as long on all of the sorted
// `ranks`; the part of a rank is that of its place among them. All of them call it, sets in the same order.

/// The two lines of a rank that they take.
[[nodiscard]] std::vector<Line> ringLines(const std::vector<int>& ranks, int rank);

/// In place: afterwards the rank's own part holds the sum over the ranks, in an order that does not depend on timing; the other
/// parts hold nothing of use. Each rank sends (n - 1) / n of the bytes.
[[nodiscard]] Result<void> reduceScatterSum(Comm& comm, const at::Tensor& flat, const std::vector<int>& ranks);
/// In place: afterwards every part is as on the rank whose part it is. Each rank sends (n - 1) / n of the bytes.
[[nodiscard]] Result<void> allGather(Comm& comm, const at::Tensor& flat, const std::vector<int>& ranks);

}  // namespace evenkeel
