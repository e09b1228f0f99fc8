// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/result.h"

namespace evenkeel::metis {

/// What public Metis is given (baseline-metis.md 1), with its hidden inputs made explicit: the order of the node types and the
/// profile that was read first.
struct OriginalCase {
  struct Node {
    std::string type;
    int devices = 0;
    double bandwidth = 0;  // GB/s; the one inside the node, which the original uses for all
  };
  /// One file: a device type, a tp degree and a batch size.
  struct Profile {
    std::vector<double> layerMs;  // forward and backward
    double forwardBackwardMs = 0;
    std::vector<double> layerMemoryMb;
  };
  using Key = std::tuple<std::string, int, int>;  // type, tp, batch

  std::vector<Node> nodes;
  std::map<std::string, double> memoryMb;            // of one device, by type
  std::vector<std::vector<std::string>> typeOrders;  // as the original goes through them
  std::map<Key, Profile> profiles;
  std::string firstType;  // of the profile that was read first; these come from it
  std::vector<double> parameterBytes;
  double optimizerMs = 0, batchGeneratorMs = 0;

  int layers = 0;
  std::int64_t globalBatch = 0;
  std::int64_t hidden = 0, sequence = 0, vocabulary = 0;
  int mostTp = 0, mostBatch = 0, mostPermuted = 0;
  double variance = 0;

  [[nodiscard]] int deviceCount() const;
};

/// Reads `folder`/case.json, hostfile and clusterfile.json, and the profiles DeviceType.<T>_tp<t>_bs<b>.json of `profiles`.
/// Errors name the file and the field.
[[nodiscard]] Result<OriginalCase> loadOriginalCase(const std::filesystem::path& folder, const std::filesystem::path& profiles);

}  // namespace evenkeel::metis
