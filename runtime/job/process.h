// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/base/units.h"

namespace evenkeel {

/// The kernel kills this process when the thread that started it ends: no worker outlives its agent. Fails when that parent is
/// gone already.
[[nodiscard]] Result<void> endWithParent();

/// One thread a worker, in every library that we load: sets the variables that OpenMP and OpenBLAS read, for those that read them
/// late. The caller must also call at::set_num_threads(1), which binds OpenMP whatever it has read already.
void askForOneThread();

/// Largest resident size that this process has had (VmHWM), libraries included; 0 where /proc does not say.
[[nodiscard]] Bytes peakResident();

}  // namespace evenkeel
