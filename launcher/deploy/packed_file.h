// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "launcher/deploy/bundle.h"

namespace evenkeel {

/// The programs that can pack here, the better first: of "zstd", "gzip".
[[nodiscard]] std::vector<std::string> packersHere();

/// The file packed by `packer` (a program of this machine), below `folder` under a name made of its checksum; made if it is not
/// there yet. Callers in several threads wait for each other.
[[nodiscard]] Result<std::filesystem::path> packedFile(const BundleFile& file, const std::filesystem::path& folder,
                                                       const std::string& packer);

}  // namespace evenkeel
