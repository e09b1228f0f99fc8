// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace evenkeel {

/// One record of a table: column name -> text, with the line it stands on.
struct CsvRow {
  int line = 0;
  std::map<std::string, std::string, std::less<>> fields;
};

/// Reads RFC 4180 text (quotes, doubled quotes, commas and line ends inside quotes) whose first record names the columns.
/// Records with another number of fields are errors that name `source:line`. Empty lines and lines that start with # are skipped.
[[nodiscard]] Result<std::vector<CsvRow>> parseCsv(std::string_view text, const std::string& source);

}  // namespace evenkeel
