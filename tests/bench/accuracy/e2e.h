// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"

namespace evenkeel::accuracy {

/// Aceso's best measured iteration of a GPT on V100s. The table names no plan, so ours stands beside it and is no prediction of
/// it.
struct EndToEnd {
  std::string size;
  int gpus = 0;
  std::int64_t globalBatch = 0;
  Seconds measured;
  std::optional<Seconds> ours;  // of the best plan that `eth` finds for the same size, GPUs and batch
};
[[nodiscard]] Result<std::vector<EndToEnd>> endToEnd(const std::filesystem::path& data);

}  // namespace evenkeel::accuracy
