// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/import_support.h"

#include <array>

#include "core/cluster/catalogue.h"
#include "core/profile/importers.h"

namespace evenkeel {

std::optional<Seconds> secondsOf(const Json& json, double unit) {
  if (!json.is_number()) return std::nullopt;
  const double seconds = json.get<double>() * unit;
  if (!(seconds >= 0 && seconds <= 1e6)) return std::nullopt;
  return Seconds{seconds};
}

std::string deviceNameOf(const std::string& theirs) {
  // What Metis and Sailor call their cards, and which of our rows they are.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNames = {{{"A100", "A100-40-SXM"},
                                                                                           {"A100-40", "A100-40-SXM"},
                                                                                           {"A100-80", "A100-80-SXM"},
                                                                                           {"V100", "V100-32-SXM2"},
                                                                                           {"V100-16", "V100-16-SXM2"},
                                                                                           {"V100-32", "V100-32-SXM2"},
                                                                                           {"RTX-3090", "RTX3090"}}};
  for (const auto& [name, ours] : kNames) {
    if (name == theirs) return std::string(ours);
  }
  return theirs;
}

DeviceType referenceType(const std::string& theirs) {
  if (auto type = deviceTypeNamed(deviceNameOf(theirs))) {
    // Foreign profiles know no precision that the card lacks; for proportions fp16 stands in for bf16.
    if (!type->has(Precision::Bf16) && type->has(Precision::Fp16)) type->peak[Precision::Bf16] = type->peak[Precision::Fp16];
    return *std::move(type);
  }
  return *deviceTypeNamed("A100-40-SXM");
}

}  // namespace evenkeel
