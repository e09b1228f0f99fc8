// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/profile/profile_table.h"

namespace evenkeel {

/// What is to be measured: the ops of a model in a training, for these numbers of samples.
struct ProfileRequest {
  Model model;
  Training training;
  std::vector<std::int64_t> samples;
  std::string deviceType;  // without "@speed"
  Seconds perPoint{0.5};   // CPU time to spend on a unit at one number of samples; at least kLeastRuns runs whatever it takes
  double speed = 1;        // below 1: rests between passes as a device of that speed does, and finds caches as cold as that leaves them
};
inline constexpr int kLeastRuns = 5;

[[nodiscard]] Result<ProfileRequest> parseProfileRequest(const Json& json, const std::string& source);
[[nodiscard]] Json toJson(const ProfileRequest& request);

/// Times every op of every kind of unit of the model on this device, forward and backward, by the thread's CPU time: means over whole
/// steps of the model, or of its first layers where it has many, without the slowest twentieth. Also what the process holds before any
/// tensor of the model. tp 1: others are scaled from it (TableProfile).
[[nodiscard]] ProfileTable measureOps(const ProfileRequest& request);

}  // namespace evenkeel
