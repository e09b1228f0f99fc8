// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>

namespace evenkeel {

/// One thread for everything that LibTorch and its BLAS do in this process.
void useOneThread();

/// Below this a core of this century runs a BLAS without kernels of its own (the reference BLAS: 2-3 GFLOP/s).
inline constexpr double kSlowGemmGflops = 20.0;

/// GFLOP/s of a single-precision matrix product by the thread's CPU time, best of a few; takes some milliseconds.
[[nodiscard]] double measureGemmGflops();

}  // namespace evenkeel
