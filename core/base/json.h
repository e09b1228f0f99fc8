// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace evenkeel {

/// Fields keep their order, so that what we write reads as a person would have written it.
using Json = nlohmann::ordered_json;

/// Largest file that is read into memory, and deepest nesting that is accepted: a corrupt or hostile file must not end us.
inline constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{1} << 30U;
inline constexpr int kMaxJsonDepth = 64;

/// Parses one JSON document. Errors name `source:line:column` and what was expected there.
[[nodiscard]] Result<Json> parseJson(std::string_view text, const std::string& source);

/// The bytes of a regular file; folders, missing and unreadable files are errors that say so.
[[nodiscard]] Result<std::string> readFile(const std::filesystem::path& file);

[[nodiscard]] Result<Json> readJsonFile(const std::filesystem::path& file);

/// Writes beside the target, flushes, renames: a reader sees the old or the new file, never half of one. Mode 0600 if `isPrivate`.
[[nodiscard]] Result<void> writeFileAtomically(const std::filesystem::path& file, std::string_view bytes, bool isPrivate = false);

/// The number to 12 significant digits: what unit conversions add beyond that is noise, and files must survive a round trip.
[[nodiscard]] double rounded(double number);

/// Two-space indented text with a final newline: how all our files are written.
[[nodiscard]] std::string prettyText(const Json& json);

}  // namespace evenkeel
