// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/own_estimate.h"

#include <fmt/format.h>

namespace evenkeel {
namespace {

/// Plans that are tried once the search was stopped: an answer is due within 50 ms.
constexpr std::size_t kMostTriedLate = 4;
constexpr std::string_view kFinder = "best by its own estimate";

}  // namespace

Result<void> refuseExact(const PlannerOptions& given, std::string_view needs) {
  const auto exact = given.find("exact");
  if (exact == given.end() || exact->second == "false") return {};
  if (exact->second != "true")
    return invalidInput("--planner-option exact", fmt::format("is \"{}\"", exact->second), "expected true or false");
  return invalidInput("--planner-option exact", "works on a recorded case only", fmt::format("add {}", needs));
}

std::size_t takeFirstValid(SearchSession& session, std::size_t count,
                           const std::function<const std::vector<Pipeline>&(std::size_t)>& planAt) {
  std::size_t taken = 0;
  for (; taken < count && session.incumbent().empty(); ++taken) {
    if (!session.stopped())
      session.consider(
          1, [&](std::size_t) { return planAt(taken); }, kFinder);
    else if (taken < kMostTriedLate) session.considerLate(planAt(taken), kFinder);
    else break;
  }
  return taken;
}

}  // namespace evenkeel
