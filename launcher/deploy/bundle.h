// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "launcher/ssh/host.h"

namespace evenkeel {

struct BundleFile {
  std::string name;            // on the node
  std::filesystem::path file;  // here
  std::string sha256;
  std::uint64_t bytes = 0;
  bool isProgram = false;
};

/// Files that go to a node together, under a directory named after their content: what is there is never copied again, and two
/// versions never mix.
struct Bundle {
  std::vector<BundleFile> files;
  std::string directory;  // below the node's cache directory: "bundles/1f2e..."
};

/// Our agent and worker from the folder of our programs. A missing one is an Error. Reads them whole (checksums).
[[nodiscard]] Result<Bundle> programBundle(const std::filesystem::path& programs);

using CopyProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// The files of the bundle that the node lacks, or holds with another content, below `cache` (absolute, on the node).
[[nodiscard]] Result<std::vector<BundleFile>> missingFiles(Host& host, const std::string& cache, const Bundle& bundle,
                                                           std::chrono::milliseconds deadline, std::stop_token stop = {});

/// Puts files of a bundle where they belong below `cache`. Only silence limits it.
[[nodiscard]] Result<void> copyFiles(Host& host, const std::string& cache, const Bundle& bundle,
                                     const std::vector<BundleFile>& files, const CopyProgress& onProgress = {},
                                     std::stop_token stop = {});

[[nodiscard]] std::uint64_t bytesOf(const std::vector<BundleFile>& files);

}  // namespace evenkeel
