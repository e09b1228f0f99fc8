// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace evenkeel {

/// Names of hosts as people and Slurm write them: "a,b", "gpu[01-03,7]", "rack[1-2]-node[1-4]". Numbers keep their leading zeros;
/// several brackets multiply, the last one fastest; a name that comes twice stays twice. Spaces around commas are fine. Errors name
/// the column. At most 16384 names.
[[nodiscard]] Result<std::vector<std::string>> expandNodeList(std::string_view text);

}  // namespace evenkeel
