// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <filesystem>

#include "launcher/agent/node_job.h"
#include "launcher/agent/processes.h"

namespace evenkeel {

/// What stands in a run's directory on a node before it is started.
struct GivenRun {
  NodeJob node;
  Json run;                              // the run's settings
  std::chrono::milliseconds deadline{};  // for the start
};
[[nodiscard]] Result<GivenRun> readRunDirectory(const std::filesystem::path& directory);

/// The checkpoint directory that the run names, held until this process ends, so that two runs never write into one. Only the
/// node of rank 0 writes there; one that the run does not name lies in the run's own directory.
[[nodiscard]] Result<Fd> holdCheckpoints(const GivenRun& given);

}  // namespace evenkeel
