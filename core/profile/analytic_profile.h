// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/profile/profile.h"

namespace evenkeel {

/// What a class of devices makes of its data sheet. Everything that is fitted, not counted, stands here.
struct DeviceClass {
  double forwardEfficiency, backwardEfficiency;  // of the dense peak, in matrix products
  double bandwidthEfficiency;                    // of the memory bandwidth
  Seconds forwardOverhead, backwardOverhead;     // per op, at speed 1
  double optimizerTraffic;                       // bytes read and written per updated parameter
  Bytes reserved;                                // context and framework, before any tensor of ours
};

/// The class of a device type: "cpu" (one core) or an accelerator.
[[nodiscard]] const DeviceClass& deviceClassOf(const DeviceType& device);

/// Ring all-reduce of `size` bytes over `members` devices that each reach the next by `link`; 0 for one member.
[[nodiscard]] Seconds allReduceTime(Bytes size, int members, const LinkSpec& link);

/// t = FLOPs / (E peak) + bytes / (W bandwidth) + overhead, divided by the device's speed, + tp all-reduce over device.intra.
/// Source of the form: algorithms.md 3. Nothing is measured, and every value says so.
class AnalyticProfile final : public Profile {
 public:
  AnalyticProfile(Model model, Training training);

  [[nodiscard]] OpCost cost(const DeviceType& device, Op op, int tp, std::int64_t samples) const override;
  [[nodiscard]] Bytes reserved(const DeviceType& device) const override;
  [[nodiscard]] std::string description() const override { return "analytic (device table)"; }

 private:
  Model model_;
  Training training_;
};

}  // namespace evenkeel
