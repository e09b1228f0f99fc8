// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.h"

namespace evenkeel {

/// One accelerator as its vendor's tool reports it.
struct FoundDevice {
  int index = 0;             // the tool's own number; PCI order, so that CUDA_DEVICE_ORDER=PCI_BUS_ID agrees
  std::string product;       // the vendor's name of it: "NVIDIA A100-SXM4-80GB"
  std::string uuid;          // what pins it: NVIDIA's UUID, AMD's unique id, Ascend's bus id
  Bytes memory, used;
  std::string driver, capability;    // "535.129.03", "8.0"; empty: the tool does not say
  std::vector<std::int64_t> processes;  // that use it now
  std::string problem;       // why it cannot be used although it is there: MIG, bad health; empty: none
  bool operator==(const FoundDevice&) const = default;
};

/// What one tool said: devices, or why there is nothing to read. Never throws; a line that is not understood is `problem`, and what was
/// understood before stays.
struct DeviceReport {
  std::vector<FoundDevice> devices;
  std::string problem;
};

/// `nvidia-smi --query-gpu=index,uuid,name,... --format=csv,nounits` with its header line: columns are found by their names, so that
/// older drivers may lack some. "[N/A]" and "[Not Supported]" are nothing. A card with MIG switched on has a problem.
[[nodiscard]] DeviceReport parseNvidiaSmi(std::string_view text);
/// `nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv,noheader,nounits`: adds the processes to their devices.
void addNvidiaProcesses(std::string_view text, std::vector<FoundDevice>& devices);
/// `nvidia-smi topo -m`: "NV12" where every pair of GPUs has NVLink (the fewest links of a pair), else the worst way of a pair: "PIX", "PXB",
/// "PHB", "NODE", "SYS"; empty: one GPU, or not understood.
[[nodiscard]] std::string nvidiaLinks(std::string_view text);

/// `rocm-smi --showproductname --showuniqueid --showmeminfo vram --json`
[[nodiscard]] DeviceReport parseRocmSmi(std::string_view text);

/// `npu-smi info`: the table with its two lines a chip and the table of processes below.
[[nodiscard]] DeviceReport parseNpuSmi(std::string_view text);

/// Devices that somebody uses: processes on it, or more than a tenth of its memory in use.
[[nodiscard]] bool isBusy(const FoundDevice& device);

}  // namespace evenkeel
