// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <bitset>

#include "core/profile/profile.h"

namespace evenkeel {

/// The costs of all ops on one device for one tp degree and number of samples, by op.
using OpCosts = std::array<OpCost, kOpCount>;
/// Which ops are recomputed, by op.
using OpSet = std::bitset<kOpCount>;

/// One unit, for the samples of one replica.
struct UnitCost {
  Seconds forward, backward;  // backward includes recomputation
  Bytes saved;                // from forward to backward
  Bytes transient;            // most workspace at once: that of an op, and the recomputed run that is expanded at that moment
};

/// Adjacent recomputed ops are one run: only the input of its first op is kept, and while its backward runs all that it would
/// have saved exists once. Ops of other units are ignored. O(ops of the unit).
[[nodiscard]] UnitCost unitCost(const OpCosts& costs, UnitKind kind, OpSet recomputed);

}  // namespace evenkeel
