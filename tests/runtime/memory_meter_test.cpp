// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/memory_meter.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "runtime/job/process.h"

namespace evenkeel {
namespace {

/// Of this process, without pages of files.
double anonymousMegabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == "RssAnon:" && status >> kilobytes) return kilobytes * 1024 / 1e6;
  }
  ADD_FAILURE() << "the kernel says nothing";
  return 0;
}

class MemoryMeter : public ::testing::Test {
 protected:
  void SetUp() override {
    keepFreedMemory();
    meterTensors();
  }
  static at::Tensor written(std::int64_t kilobytes) { return at::full({kilobytes * 256}, 1.0F, at::kFloat); }
};

// The C library kept what had been freed between blocks that live on, and took more for what did not fit there.
TEST_F(MemoryMeter, OfBlocksOfUnlikeLivesTheProcessHoldsNoMoreThanTheirPeak) {
  resetPeakTensorBytes();
  const double before = anonymousMegabytes(), heldBefore = static_cast<double>(tensorBytes().value) / 1e6;
  std::vector<at::Tensor> living, dying;
  for (const std::int64_t kilobytes : {1000, 1500, 2300}) {
    for (int i = 0; i < 16; ++i) {
      living.push_back(written(100));
      dying.push_back(written(kilobytes));
    }
    dying.clear();
  }
  const double peak = static_cast<double>(peakTensorBytes().value) / 1e6 - heldBefore;
  EXPECT_NEAR(peak, 16 * 2.3 + 48 * 0.1, 3);
  EXPECT_LT(anonymousMegabytes() - before, 1.05 * peak + 2);
}

TEST_F(MemoryMeter, CountsWhatIsHeldAndHandsAFreedBlockOutAgain) {
  const Bytes before = tensorBytes();
  at::Tensor one = written(2000);
  const void* const place = one.data_ptr();
  EXPECT_NEAR(static_cast<double>((tensorBytes() - before).value), 2000 * 1024, 16384);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place) % 64, 0U) << "aligned for whole vectors";
  one.reset();
  EXPECT_EQ(tensorBytes(), before);
  one = written(1990);
  EXPECT_EQ(one.data_ptr(), place) << "its pages are there";
  const at::Tensor other = at::empty({256 * 500}, at::kFloat);
  EXPECT_NE(other.data_ptr(), place);
}

}  // namespace
}  // namespace evenkeel
