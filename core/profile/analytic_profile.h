// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/profile/device_class.h"
#include "core/profile/profile.h"

namespace evenkeel {

/// All-reduce of `size` bytes over `members` devices that reach each other by `link`, as devices of the class do it; 0 for one
/// member.
[[nodiscard]] Seconds allReduceTime(Bytes size, int members, const LinkSpec& link, const DeviceClass& deviceClass);

/// How the analytic profile is told from what a plan says alone.
struct AnalyticOptions {
  /// Dropout layers run, and keep what their backward needs. Without, types that run here keep nothing (Run::dropout is 0 unless said);
  /// how a type is trained that does not, nobody knows: its memory holds masks all the same.
  bool dropout = false;
  const DeviceClass* deviceClass = nullptr;  // for every device; nullptr: that of its type
};

/// t = FLOPs / (E peak) + bytes / (W bandwidth) + overhead, divided by the device's speed, + tp all-reduce over device.intra.
/// Source of the form: algorithms.md 3. Nothing is measured, and every value says so.
class AnalyticProfile final : public Profile {
 public:
  AnalyticProfile(Model model, Training training, AnalyticOptions options = {});

  [[nodiscard]] OpCost cost(const DeviceType& device, Op op, int tp, std::int64_t samples) const override;
  [[nodiscard]] Bytes reserved(const DeviceType& device) const override;
  [[nodiscard]] std::string description() const override { return "analytic (device table)"; }

 private:
  Model model_;
  Training training_;
  AnalyticOptions options_;
};

}  // namespace evenkeel
