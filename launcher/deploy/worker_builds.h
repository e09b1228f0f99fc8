// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/deploy/bundle.h"

namespace evenkeel {

/// A worker that was built for a LibTorch with CUDA: `./run.sh --cuda` puts it into workers/VERSION beside our programs.
struct WorkerBuild {
  std::filesystem::path folder;  // with evenkeel-agent and evenkeel-worker
  std::string torch;             // "2.7.1+cu126": whole, for LibTorch's binary interface changes with each
  bool operator==(const WorkerBuild&) const = default;
};

/// All of them, by version; a folder without a worker.json that says its version is left out.
[[nodiscard]] std::vector<WorkerBuild> workerBuilds(const std::filesystem::path& programs);

/// What of a bundle a node lacks that has the LibTorch of this version itself: everything but LibTorch, CUDA and NCCL.
[[nodiscard]] Bundle withoutTorch(const Bundle& bundle);

}  // namespace evenkeel
