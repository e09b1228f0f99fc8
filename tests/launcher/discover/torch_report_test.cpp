// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/discover/torch_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

const FoundTorch kTorch{
    .path = "/t", .version = "2.4.1+cu121", .cuda = "12.1", .nccl = "2.20.5", .architectures = {"sm_70", "sm_80", "sm_90a"}};

FoundDevice card(const std::string& capability, const std::string& driver = "535.129.03") {
  FoundDevice device;
  device.capability = capability;
  device.driver = driver;
  return device;
}

TEST(TorchReport, ReadsWhatTheProbePrintsAlsoBehindWarnings) {
  const auto torch = parseTorch(
      "UserWarning: something\n{\"path\": \"/t\", \"version\": \"2.4.1+cu121\", \"cuda\": \"12.1\", \"nccl\": \"2.20.5\", "
      "\"architectures\": [\"sm_70\", \"sm_80\", \"sm_90a\"]}\n");
  ASSERT_TRUE(torch);
  EXPECT_EQ(*torch, kTorch);
  EXPECT_FALSE(parseTorch("ModuleNotFoundError: No module named 'torch'\n"));
  EXPECT_FALSE(parseTorch("{\"path\": 7"));
  EXPECT_FALSE(parseTorch(""));
}

TEST(TorchReport, KnowsForWhichCardsThereIsCode) {
  for (const char* capability : {"7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "", "[N/A]"})
    EXPECT_EQ(objectionTo(kTorch, card(capability)), "") << capability;
  EXPECT_EQ(objectionTo(kTorch, card("12.0")),
            "torch 2.4.1+cu121 has no code for compute capability 12.0 (it has sm_70, sm_80, sm_90a)");
  EXPECT_THAT(objectionTo(kTorch, card("6.1")), HasSubstr("no code for compute capability 6.1"));
  FoundTorch compiled = kTorch;
  compiled.architectures.push_back("compute_90");
  EXPECT_EQ(objectionTo(compiled, card("12.0")), "");
  FoundTorch cpu = kTorch;
  cpu.cuda.clear();
  EXPECT_THAT(objectionTo(cpu, card("8.0")), HasSubstr("knows the CPU only"));
}

TEST(TorchReport, NamesADriverThatIsTooOld) {
  EXPECT_EQ(objectionTo(kTorch, card("8.0", "470.199.02")),
            "driver 470.199.02 is too old for CUDA 12.1: it needs 525.60 at least");
  EXPECT_EQ(objectionTo(kTorch, card("8.0", "525.60.13")), "");
  EXPECT_EQ(objectionTo(kTorch, card("8.0", "")), "");
}

TEST(TorchReport, NamesUnlikeNccl) {
  FoundTorch other = kTorch;
  other.nccl = "2.18.1";
  EXPECT_EQ(unlikeNccl({{"a", kTorch}, {"b", kTorch}}), "");
  EXPECT_EQ(unlikeNccl({{"a", kTorch}, {"b", other}, {"c", kTorch}}), "NCCL 2.18.1 on b, 2.20.5 on a and c");
}

}  // namespace
}  // namespace evenkeel
