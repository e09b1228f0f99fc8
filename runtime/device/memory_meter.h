// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/units.h"

namespace evenkeel {

/// Counts the bytes that all CPU tensors of this process hold from the first call of meterTensors() on.
void meterTensors();

/// Now; exact, as the C library rounds them. Tensors that are older than the meter are not among them.
[[nodiscard]] Bytes tensorBytes();
/// Most at once since resetPeakTensorBytes().
[[nodiscard]] Bytes peakTensorBytes();
void resetPeakTensorBytes();

}  // namespace evenkeel
