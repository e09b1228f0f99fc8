// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/plan/problem.h"
#include "core/profile/profile.h"

namespace evenkeel {

/// One sentence of why a plan is as it is. Its numbers come from evaluating the plan, or the plan changed as it says.
struct Reason {
  enum class About { Bottleneck, Samples, MicroBatch, Recomputation, Sync, Idle };
  About about = About::Bottleneck;
  std::string sentence;
  std::optional<Seconds> iteration;  // of the changed plan, where it is valid
  std::vector<Pipeline> changed;     // that plan's pipelines; empty where the sentence speaks of the plan itself
};
/// "bottleneck", "samples", "micro-batch", "recomputation", "sync", "idle"
[[nodiscard]] std::string_view name(Reason::About about);

/// What sets the pace; what a unit less there, a micro-batch less in the slowest pipeline, other micro-batches, no recomputation
/// in a stage, another gradient sync and each kind of idle devices would do. Empty where the plan is not valid. After a stop
/// request what was found until then. A few hundred evaluations at most.
[[nodiscard]] std::vector<Reason> reasonsFor(const Plan& plan, const Profile& profile, std::stop_token stop = {});

/// Why devices hold too little: for each type what one of its devices holds at best, and what all hold together. One sentence
/// each, the sum last.
[[nodiscard]] std::vector<std::string> whatFits(const Problem& problem, const Profile& profile);

}  // namespace evenkeel
