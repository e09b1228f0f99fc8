// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"

namespace evenkeel::accuracy {

/// Cards of one replica of a stage.
struct ReplicaCards {
  std::string card;  // as the artifact names it: "GH-96"
  int tp = 1;
};

/// One row of sailor/measured_runs.csv: a plan that somebody ran, and what it took. Nothing of a measured column enters a
/// prediction.
struct MeasuredRun {
  std::string id, runtime, model, cluster;
  int nodes = 1, cards = 1;
  int dp = 1, microBatch = 1;
  std::int64_t globalBatch = 1;
  std::vector<int> layers;                        // of each stage: layers (embedding and head are one each), or Aceso's operators
  std::vector<std::vector<ReplicaCards>> stages;  // [stage][replica]
  std::optional<Seconds> time;                    // usable ones only
  std::optional<Bytes> peak;

  [[nodiscard]] bool isAceso() const { return runtime.find("Aceso") != std::string::npos; }
  /// "gh200-opt", "gh200-neo", "mit-2", "mit-1", "aceso"; else "other".
  [[nodiscard]] std::string set() const;
};

[[nodiscard]] Result<std::vector<MeasuredRun>> loadRuns(const std::filesystem::path& file);

}  // namespace evenkeel::accuracy
