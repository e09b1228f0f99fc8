// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/base/json.h"
#include "core/cluster/device_type.h"

namespace evenkeel {

/// Bandwidths between nodes and inside them that the Sailor artifact fitted to its measurements: GB/s of n pairs of cards that
/// send at once, over message size, as a square polynomial of log2(MB) with a ceiling.
class SailorLinks {
 public:
  /// The two files of its folder network/: multizone_bandwidths_het.json (of which one zone is read) and
  /// intra_node_bandwidths.json. Failures name the file and the place in it.
  [[nodiscard]] static Result<SailorLinks> load(const std::filesystem::path& folder, const std::string& zone);

  /// The same of what the files hold; `betweenWhere` and `insideWhere` name them in errors.
  [[nodiscard]] static Result<SailorLinks> parse(const Json& between, const std::string& betweenWhere, const Json& inside,
                                                 const std::string& insideWhere, const std::string& zone);

  /// All pairs together, at message sizes from 2^16 to 2^30 bytes (8 points). The nearest number of pairs that was measured,
  /// either direction. Nothing where the two cards were not measured.
  [[nodiscard]] std::optional<LinkSpec> between(const std::string& a, const std::string& b, int pairs) const;
  [[nodiscard]] std::optional<LinkSpec> inside(const std::string& card, int pairs) const;
  /// Whether every card of a node has its own way out: many pairs get as much more as they are many.
  [[nodiscard]] bool hasNicPerCard(const std::string& card) const;

 private:
  struct Fit {
    double a = 0, b = 0, c = 0;  // GB/s
    double most = 0;             // bytes/s
  };
  using ByPairs = std::map<int, Fit>;
  [[nodiscard]] static Result<Fit> readFit(const class JsonPlace& place);
  [[nodiscard]] static LinkSpec specOf(const Fit& fit);
  [[nodiscard]] static std::optional<LinkSpec> nearest(const ByPairs& fits, int pairs);

  std::map<std::pair<std::string, std::string>, ByPairs> between_;
  std::map<std::string, ByPairs> inside_;
};

}  // namespace evenkeel
