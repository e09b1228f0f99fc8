// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/discover/device_reports.h"

namespace evenkeel {

/// The PyTorch that a host has of its own: what a worker for its GPUs is built with and uses there.
struct FoundTorch {
  std::string path, version, cuda,
      nccl;  // "/usr/lib/python3/dist-packages/torch", "2.4.1+cu121", "12.1", "2.20.5"; cuda empty: it knows the CPU only
  std::vector<std::string> architectures;  // "sm_80", "compute_90": for which it has code
  bool operator==(const FoundTorch&) const = default;
};

/// What the probe's line of Python printed; nothing if there is no torch.
[[nodiscard]] std::optional<FoundTorch> parseTorch(std::string_view text);

/// Why this torch cannot use this card: no code for its compute capability, a driver that is older than its CUDA needs; empty: it
/// can, or the card's tool does not say enough.
[[nodiscard]] std::string objectionTo(const FoundTorch& torch, const FoundDevice& device);

/// The hosts' NCCL versions, if they are not all the same: ranks of unlike ones do not understand each other. Empty: they are, or
/// nobody has one.
[[nodiscard]] std::string unlikeNccl(const std::vector<std::pair<std::string, FoundTorch>>& hosts);

}  // namespace evenkeel
