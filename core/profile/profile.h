// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

#include "core/model/model.h"
#include "core/model/training.h"
#include "core/plan/plan.h"

namespace evenkeel {

/// Where a value comes from.
enum class ValueSource { Measured, Imported, Interpolated, Apportioned, Analytic };
[[nodiscard]] std::string_view name(ValueSource source);

/// Time and bytes of one op on one device, for `samples` samples (of one replica) and one tp degree; sizes are per device.
struct OpCost {
  Seconds forward, backward;  // with the op's own tp collectives; backward without recomputation
  Bytes weights;              // in the training precision
  Bytes saved;                // activations kept from forward to backward
  Bytes input;                // what the op reads: kept instead of all that is saved in a recomputed run that begins with it
  Bytes boundary;             // residual tensor if a stage were cut behind this op
  Bytes transient;            // workspace while the op runs
  ValueSource source = ValueSource::Analytic;
};

/// How long and how large: the one thing that planners know of real hardware. Thread-safe; the same question has the same answer.
class Profile {
 public:
  virtual ~Profile() = default;
  /// tp and samples at least 1; the training precision exists on the device. Never fails: missing points are interpolated
  /// and marked.
  [[nodiscard]] virtual OpCost cost(const DeviceType& device, Op op, int tp, std::int64_t samples) const = 0;
  /// Memory that the framework holds on such a device before any tensor of ours.
  [[nodiscard]] virtual Bytes reserved(const DeviceType& device) const = 0;
  /// False where nothing of the device type stands in the profile, so that all answers for it come from elsewhere.
  [[nodiscard]] virtual bool knows(const DeviceType&) const { return true; }
  /// One line for people: "analytic (device table)", "profile v100.json".
  [[nodiscard]] virtual std::string description() const = 0;
};

}  // namespace evenkeel
