// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/torch_setup.h"

#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <dlfcn.h>

#include <algorithm>

#include "runtime/device/compute_clock.h"

namespace evenkeel {

void useOneThread() {
  at::set_num_threads(1);
  at::set_num_interop_threads(1);
  // A threaded OpenBLAS has read its environment when it was loaded, before main().
  if (auto* const setThreads = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) setThreads(1);
}

double measureGemmGflops() {
  constexpr std::int64_t kRows = 256, kColumns = 1024, kInner = 256;
  constexpr double kFlops = 2.0 * kRows * kColumns * kInner;
  const at::Tensor a = at::ones({kRows, kInner}), b = at::ones({kInner, kColumns});
  double best = 0;
  for (int repeat = 0; repeat < 4; ++repeat) {
    const Seconds start = threadCpuTime();
    (void)at::mm(a, b);
    best = std::max(best, kFlops / (threadCpuTime() - start).value * 1e-9);
  }
  return best;
}

}  // namespace evenkeel
