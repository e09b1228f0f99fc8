// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace evenkeel {

/// One broken invariant: the place in people's words, what is wrong there, and what would mend it (may be empty).
struct Violation {
  std::string where, what, remedy;
  bool operator==(const Violation&) const = default;
};

/// Every broken invariant of shape (algorithms.md 2): devices used twice, units lost or doubled, empty stages, samples lost,
/// tp that does not divide, tp groups across nodes or types, shares that do not sum, precision that a used device lacks.
/// Empty: the shape is valid. Memory is checked in core/cost. O(devices + units).
[[nodiscard]] std::vector<Violation> shapeViolations(const Plan& plan);

/// "pipeline 0, stage 1"
[[nodiscard]] std::string placeOf(std::size_t pipeline, std::size_t stage);

}  // namespace evenkeel
