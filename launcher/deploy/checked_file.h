// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "launcher/deploy/bundle.h"

namespace evenkeel {

/// A file of this machine with its size and checksum; reads it whole. One that is missing or no regular file is an Error.
[[nodiscard]] Result<BundleFile> checkedFile(const std::filesystem::path& file, const std::string& name);

/// "bundles/1f2e...": named after the files' contents and names.
[[nodiscard]] std::string directoryOf(const std::vector<BundleFile>& files);

}  // namespace evenkeel
