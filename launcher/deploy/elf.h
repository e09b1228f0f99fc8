// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace evenkeel {

/// What a loader reads of a program or library (64 bits, this machine's byte order).
struct ElfFile {
  std::vector<std::string> needed;     // sonames
  std::vector<std::string> undefined;  // symbols that another library must define; weak ones are left out
  std::vector<std::string> defined;
  std::string glibc;  // the newest version that it asks for: "2.34"; empty: none
};

/// Reads the dynamic part. A file that is none, or that is cut off or odd, is an Error; whatever its tables say is checked first.
[[nodiscard]] Result<ElfFile> readElf(const std::filesystem::path& file);

/// Copies the file without its NEEDED entries for these sonames: a library none of whose symbols is used is then not loaded.
[[nodiscard]] Result<void> copyWithoutNeeded(const std::filesystem::path& from, const std::filesystem::path& to,
                                             const std::set<std::string>& dropped);

/// -1, 0, 1 as a is older than, equal to or newer than b: "2.9" is older than "2.36".
[[nodiscard]] int compareVersions(const std::string& a, const std::string& b);

}  // namespace evenkeel
