// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/job/process.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/base/words.h"

namespace evenkeel {

Result<void> endWithParent() {
  const pid_t parent = ::getppid();
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return failed("worker", "cannot ask the kernel to end with its parent");
  if (::getppid() != parent) return failed("worker", "its parent ended while it started");
  return {};
}

void askForOneThread() {
  ::setenv("OMP_NUM_THREADS", "1", 1);
  ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
  ::setenv("MKL_NUM_THREADS", "1", 1);
  ::setenv("OMP_WAIT_POLICY", "PASSIVE", 1);  // spinning threads of oversubscribed cores are 100 times slower
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
