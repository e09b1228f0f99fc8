// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/plan/plan.h"

namespace evenkeel {

/// If what a library has thrown says that memory ran out: which stage on which device it was, and what in its plan would need less.
[[nodiscard]] std::optional<Error> outOfMemory(const std::string& said, const Plan& plan, int rank);

}  // namespace evenkeel
