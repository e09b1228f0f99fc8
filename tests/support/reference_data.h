// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace evenkeel {

/// A file of the reference data (measurements of others that we may not commit), or nothing where they are absent.
/// The environment variable EVENKEEL_REFERENCE_DATA wins over CMake's of that name.
[[nodiscard]] inline std::optional<std::filesystem::path> referenceData(const std::string& name) {
  const char* fromEnvironment = std::getenv("EVENKEEL_REFERENCE_DATA");
  const std::filesystem::path file = std::filesystem::path(fromEnvironment != nullptr ? fromEnvironment : EVENKEEL_REFERENCE_DATA) / name;
  if (!std::filesystem::exists(file)) return std::nullopt;
  return file;
}

}  // namespace evenkeel
