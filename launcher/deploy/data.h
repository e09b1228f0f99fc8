// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/deploy/bundle.h"

namespace evenkeel {

/// The training text as one file of bytes, and behind it the text to evaluate on.
struct PackedData {
  std::filesystem::path file;
  std::string sha256;
  std::uint64_t bytes = 0;       // of the file
  std::uint64_t trainBytes = 0;  // of them
  std::string trainSha256;       // of these alone: what tells one training text from another
};

inline constexpr std::uint64_t kMostDataBytes = std::uint64_t{4} << 30U;

/// Joins what a person named into one file under `cache` (data/SHA256, mode 0600): the names in their order, the files of a
/// folder by their relative paths in byte order, so that the same folder gives the same bytes everywhere. Regular files only; in
/// folders neither hidden ones (.git) nor links. Missing, unreadable, empty or more than kMostDataBytes: an Error that says
/// which.
[[nodiscard]] Result<PackedData> packData(const std::vector<std::string>& names, const std::filesystem::path& cache,
                                          const std::vector<std::string>& validationNames = {});

/// Whether there is something behind each of the names, as packData would find.
[[nodiscard]] Result<void> checkData(const std::vector<std::string>& names);

/// The packed file as something to deploy.
[[nodiscard]] Bundle bundleOf(const PackedData& data);
inline constexpr const char* kDataFile = "train.bytes";

}  // namespace evenkeel
