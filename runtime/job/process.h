// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/base/units.h"

namespace evenkeel {

/// The kernel kills this process when the thread that started it ends: no worker outlives its agent. Fails when that parent is
/// gone already.
[[nodiscard]] Result<void> endWithParent();

/// Prepares what libraries read from the environment when they are loaded: one thread each, and the kernels of an OpenBLAS that
/// is older than this processor (it would take those of 2004: five times slower on AVX-512). The latter needs to load them again:
/// the process then executes itself once more with the same arguments. Call it first in main(). The caller must also call
/// useOneThread(), for the libraries that have read their environment by now.
void prepareLibraries(char** arguments);

/// The kernels to ask OpenBLAS for (OPENBLAS_CORETYPE) when it has chosen `chosen`; empty: leave it as it is.
struct ProcessorFeatures {
  bool avx2 = false, avx512 = false;
};
[[nodiscard]] std::string betterKernels(const std::string& chosen, ProcessorFeatures processor);

/// Activations come and go with every micro-batch: lets the C library keep what is freed instead of returning it to the kernel
/// and faulting it in again. Measured: an attention unit of tiny-gpt with 8 samples, backward 7.9 -> 5.7 ms.
void keepFreedMemory();

/// Largest resident size that this process has had (VmHWM), libraries included; 0 where /proc does not say.
[[nodiscard]] Bytes peakResident();

}  // namespace evenkeel
