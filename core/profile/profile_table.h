// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "core/profile/profile.h"

namespace evenkeel {

/// Under what the values of a profile hold. Empty or 0: not known.
struct ProfileConditions {
  std::optional<Precision> precision;
  std::int64_t sequenceLength = 0;
  std::string model, framework, driver, date;
  bool operator==(const ProfileConditions&) const = default;
};

/// One measured or imported point: an op on one device of a tp group, for so many samples.
struct ProfilePoint {
  Seconds forward, backward;   // with the op's own tp collectives, at speed 1 of the device
  std::optional<Bytes> saved;  // nothing: counted from the shapes
  ValueSource source = ValueSource::Imported;
  int runs = 0;       // measured so often; 0: not known
  double spread = 0;  // standard deviation over mean of forward + backward
  bool operator==(const ProfilePoint&) const = default;
};

/// What is known of one device type.
struct DeviceProfile {
  struct Key {
    Op op;
    int tp;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, std::map<std::int64_t, ProfilePoint>> points;  // by samples
  std::optional<Bytes> reserved;
  bool operator==(const DeviceProfile&) const = default;
};

/// A profile as data: what files hold and importers make. Device types by name, without "@speed".
struct ProfileTable {
  ProfileConditions conditions;
  std::map<std::string, DeviceProfile, std::less<>> devices;
  bool operator==(const ProfileTable&) const = default;
};

inline constexpr std::string_view kProfileFormat = "evenkeel.profile/1";
[[nodiscard]] Result<ProfileTable> parseProfile(const Json& json, const std::string& source);
[[nodiscard]] Result<ProfileTable> loadProfile(const std::filesystem::path& file);
[[nodiscard]] Json toJson(const ProfileTable& table);

}  // namespace evenkeel
