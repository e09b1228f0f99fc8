// SPDX-License-Identifier: GPL-3.0-or-later
// Typed after the formats that the vendors document; no tool of theirs is here.
#include "launcher/discover/device_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace evenkeel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kNvidiaHeader =
    "index, uuid, name, memory.total [MiB], memory.used [MiB], driver_version, pci.bus_id, mig.mode.current, ecc.errors.uncorrected.volatile.total, compute_cap\n";

TEST(NvidiaSmi, ReadsMixedCardsByTheirColumns) {
  const DeviceReport report = parseNvidiaSmi(std::string(kNvidiaHeader) +
                                             "0, GPU-aaaa, NVIDIA A100-SXM4-80GB, 81920, 4, 535.129.03, 00000000:07:00.0, Disabled, 0, 8.0\n"
                                             "1, GPU-bbbb, Tesla V100-SXM2-32GB, 32768, 30000, 535.129.03, 00000000:0A:00.0, [N/A], 0, 7.0\r\n"
                                             "2, GPU-cccc, NVIDIA GeForce RTX 3090, 24576, 1, 535.129.03, 00000000:0B:00.0, [N/A], [N/A], 8.6\n");
  EXPECT_EQ(report.problem, "");
  ASSERT_EQ(report.devices.size(), 3U);
  EXPECT_EQ(report.devices[0].product, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(gib(report.devices[0].memory), 80);
  EXPECT_EQ(report.devices[0].capability, "8.0");
  EXPECT_EQ(report.devices[1].uuid, "GPU-bbbb");
  EXPECT_TRUE(isBusy(report.devices[1]));
  EXPECT_FALSE(isBusy(report.devices[2]));
  EXPECT_EQ(report.devices[2].problem, "");
}

TEST(NvidiaSmi, NamesMigAndMemoryErrors) {
  const DeviceReport report = parseNvidiaSmi(std::string(kNvidiaHeader) + "0, GPU-a, NVIDIA A100-SXM4-40GB, 40960, 0, 1, b, Enabled, 0, 8.0\n"
                                                                          "1, GPU-b, NVIDIA A100-SXM4-40GB, 40960, 0, 1, b, Disabled, 3, 8.0\n");
  EXPECT_THAT(report.devices[0].problem, HasSubstr("MIG"));
  EXPECT_THAT(report.devices[1].problem, HasSubstr("3 uncorrected memory errors"));
}

TEST(NvidiaSmi, OfAnOlderDriverLacksColumnsButNoDevices) {
  const DeviceReport report = parseNvidiaSmi("index, uuid, name, memory.total [MiB]\n0, GPU-a, Tesla T4, 15360\n");
  ASSERT_EQ(report.devices.size(), 1U);
  EXPECT_EQ(report.devices[0].capability, "");
}

// A tool that fails is a named row, not 0 devices.
TEST(NvidiaSmi, ThatFailsIsNamed) {
  EXPECT_THAT(parseNvidiaSmi("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n").problem, HasSubstr("couldn't communicate"));
  EXPECT_THAT(parseNvidiaSmi("").problem, HasSubstr("nothing"));
  EXPECT_THAT(parseNvidiaSmi(std::string(kNvidiaHeader) + "Unable to determine the device handle for GPU 0000:07:00.0: GPU is lost.\n").problem, HasSubstr("GPU is lost"));
  EXPECT_THAT(parseNvidiaSmi("No devices were found\n").devices, IsEmpty());
}

TEST(NvidiaSmi, GivesProcessesToTheirCards) {
  std::vector<FoundDevice> devices = parseNvidiaSmi(std::string(kNvidiaHeader) + "0, GPU-a, Tesla T4, 15360, 0, 1, b, [N/A], 0, 7.5\n"
                                                                                 "1, GPU-b, Tesla T4, 15360, 0, 1, b, [N/A], 0, 7.5\n").devices;
  addNvidiaProcesses("GPU-b, 4711\nGPU-b, 4712\nGPU-x, 1\nnonsense\n", devices);
  EXPECT_THAT(devices[0].processes, IsEmpty());
  EXPECT_THAT(devices[1].processes, ElementsAre(4711, 4712));
  EXPECT_TRUE(isBusy(devices[1]));
}

TEST(NvidiaLinks, AreThoseOfTheWorstPair) {
  EXPECT_EQ(nvidiaLinks("\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV12\tPXB\t0-31\t0\nGPU1\tNV12\t X \tPXB\t0-31\t0\nmlx5_0\tPXB\tPXB\t X \n"), "NV12");
  EXPECT_EQ(nvidiaLinks("\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tNV2\tSYS\t0-9\nGPU1\tNV2\t X \tNODE\t0-9\nGPU2\tSYS\tNODE\t X \t0-9\n"), "SYS");
  EXPECT_EQ(nvidiaLinks("\tGPU0\tCPU Affinity\nGPU0\t X \t0-9\n"), "");
  EXPECT_EQ(nvidiaLinks("nonsense"), "");
}

TEST(RocmSmi, ReadsItsDocumentAlsoBehindAWarning) {
  const DeviceReport report = parseRocmSmi(
      "WARNING: some text\n{\"card1\": {\"Unique ID\": \"0x22\", \"Card series\": \"AMD Instinct MI300X\", \"VRAM Total Memory (B)\": \"206141652992\", "
      "\"VRAM Total Used Memory (B)\": \"294912\"}, \"card0\": {\"Unique ID\": \"0x11\", \"Card Series\": \"AMD Instinct MI300X\"}, \"system\": {\"x\": 1}}");
  ASSERT_EQ(report.devices.size(), 2U);
  EXPECT_EQ(report.devices[0].uuid, "0x11");
  EXPECT_EQ(report.devices[1].memory.value, 206141652992);
  EXPECT_THAT(parseRocmSmi("rocm-smi: cannot open /dev/kfd").problem, HasSubstr("cannot open /dev/kfd"));
}

TEST(NpuSmi, ReadsBothLinesOfAChipAndTheProcesses) {
  const DeviceReport report = parseNpuSmi(R"(
+------------------------------------------------------------------------------------------------+
| npu-smi 23.0.rc3                 Version: 23.0.rc3                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B2               | OK            | 93.2        41                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3351 / 65536         |
+===========================+===============+====================================================+
| 3     910B2               | Alarm         | 93.2        41                0    / 0             |
| 0                         | 0000:C2:00.0  | 0           0    / 0          3351 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 3       0                 | 4711          | python                   | 1234                    |
+===========================+===============+====================================================+
)");
  ASSERT_EQ(report.devices.size(), 2U);
  EXPECT_EQ(report.devices[0].product, "910B2");
  EXPECT_EQ(report.devices[0].uuid, "0000:C1:00.0");
  EXPECT_EQ(gib(report.devices[0].memory), 64);
  EXPECT_THAT(report.devices[1].problem, HasSubstr("Alarm"));
  EXPECT_THAT(report.devices[1].processes, ElementsAre(4711));
  EXPECT_THAT(parseNpuSmi("dcmi module initialize failed").problem, HasSubstr("not understood"));
}

TEST(DeviceReports, EndForEveryMutation) {
  const std::string texts[] = {std::string(kNvidiaHeader) + "0, GPU-a, Tesla T4, 15360, 0, 1, b, [N/A], 0, 7.5\n",
                               "{\"card0\": {\"Unique ID\": \"0x11\", \"VRAM Total Memory (B)\": \"5\"}}",
                               "| 0 910B2 | OK | 1 |\n| 0 | 0000:C1:00.0 | 0 0 / 0 3351 / 65536 |\n| x | Process id | y |\n| 0 0 | 7 | p |\n",
                               "\tGPU0\tGPU1\nGPU0\tX\tNV1\nGPU1\tNV1\tX\n"};
  std::mt19937_64 random(5);
  for (int round = 0; round < 20'000; ++round) {
    std::string text = texts[random() % std::size(texts)];
    for (int change = 0; change < 4; ++change) {
      const std::size_t at = random() % text.size();
      if (random() % 3 == 0) text.erase(at, 1 + random() % 5);
      else text[at] = static_cast<char>(random() % 256);
      if (text.empty()) text = "x";
    }
    for (const DeviceReport& report : {parseNvidiaSmi(text), parseRocmSmi(text), parseNpuSmi(text)}) {
      for (const FoundDevice& device : report.devices) {
        EXPECT_GE(device.index, 0) << text;
        EXPECT_GE(device.memory.value, 0) << text;
        EXPECT_GE(device.used.value, 0) << text;
      }
    }
    const std::string links = nvidiaLinks(text);
    EXPECT_LT(links.size(), 16U) << text;
  }
}

}  // namespace
}  // namespace evenkeel
