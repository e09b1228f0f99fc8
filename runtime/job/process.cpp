// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/job/process.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/base/words.h"

namespace evenkeel {
namespace {

/// What the OpenBLAS of this process has chosen; empty if there is none.
std::string chosenKernels() {
  auto* const name = reinterpret_cast<char* (*)()>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return name == nullptr ? "" : name();
}

ProcessorFeatures thisProcessor() {
#if defined(__x86_64__)
  return {.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
          .avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")};
#else
  return {};
#endif
}

}  // namespace

Result<void> endWithParent() {
  const pid_t parent = ::getppid();
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return failed("worker", "cannot ask the kernel to end with its parent");
  if (::getppid() != parent) return failed("worker", "its parent ended while it started");
  return {};
}

std::string betterKernels(const std::string& chosen, ProcessorFeatures processor) {
  if (chosen != "Prescott" && chosen != "Core2" && chosen != "Generic") return {};
  if (processor.avx512) return "SkylakeX";
  return processor.avx2 ? "Haswell" : "";
}

void prepareLibraries(char** arguments) {
  ::setenv("OMP_NUM_THREADS", "1", 1);
  ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
  ::setenv("MKL_NUM_THREADS", "1", 1);
  ::setenv("OMP_WAIT_POLICY", "PASSIVE", 1);  // spinning threads of oversubscribed cores are 100 times slower
  const std::string kernels = betterKernels(chosenKernels(), thisProcessor());
  if (kernels.empty() || std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
  ::setenv("OPENBLAS_CORETYPE", kernels.c_str(), 1);
  ::execv("/proc/self/exe", arguments);  // returns only where that is not possible: then the kernels stay slow, and we warn of it
}

void keepFreedMemory() {
#if defined(__GLIBC__)
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest that glibc takes
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

Bytes peakResident() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != "VmHWM:") continue;
    std::string kilobytes;
    status >> kilobytes;
    return {parseNumber<std::int64_t>(kilobytes).value_or(0) * 1024};
  }
  return {};
}

}  // namespace evenkeel
