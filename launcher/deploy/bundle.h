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
  std::string name;            // on the node, below the bundle's directory: "lib/libtorch_cpu.so.1.13"
  std::filesystem::path file;  // here
  std::string sha256;
  std::uint64_t bytes = 0;
  bool isProgram = false;
  bool isStored = false;  // of a missing one: the node has the content, of another bundle
};

/// Files that go to a node together, under a directory named after their content: two versions never mix. A node keeps each
/// content once
/// ("files/SHA256", to which the names of all bundles are links), so that of a new version only what has changed is copied.
struct Bundle {
  std::vector<BundleFile> files;
  std::string directory;  // below the node's cache directory: "bundles/1f2e..."
  std::string glibc;      // what a node must have at least, "2.36"; empty: not known
};

/// Our agent and worker from the folder of our programs, without the libraries that they need. A missing one is an Error. Reads
/// them whole (checksums).
inline const std::vector<std::string> kOurPrograms = {"evenkeel-agent", "evenkeel-worker"};
[[nodiscard]] Result<Bundle> programBundle(const std::filesystem::path& programs,
                                           const std::vector<std::string>& names = kOurPrograms);

/// The same with the libraries that they really need, but for the C library: what no symbol is used of is taken out of the
/// loader's sight, so that of Debian's LibTorch 34 libraries remain of 286. Made once below `cache` (a few seconds), and tried
/// out there with all symbols bound. Programs that are no ELF files (scripts) need no libraries.
[[nodiscard]] Result<Bundle> slimBundle(const std::filesystem::path& programs, const std::filesystem::path& cache,
                                        const std::vector<std::string>& names = kOurPrograms);

/// Bytes on their way to a node: `done` and `total` are of what travels, that is packed.
using CopyProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// The files of the bundle that the node lacks, or holds with another content, below `cache` (absolute, on the node). Changes
/// nothing.
[[nodiscard]] Result<std::vector<BundleFile>> missingFiles(Host& host, const std::string& cache, const Bundle& bundle,
                                                           std::chrono::milliseconds deadline, std::stop_token stop = {});

struct CopyOptions {
  std::filesystem::path packed;  // folder for packed files; empty: they travel as they are
  std::string packer;            // "zstd" or "gzip", which both ends have
};

/// Puts files of a bundle where they belong below `cache`: one stream, unpacked there while the next one travels; each file goes
/// in whole and with the right checksum or not at all. What a cut connection has left of one is not sent again. Only silence
/// limits it.
[[nodiscard]] Result<void> copyFiles(Host& host, const std::string& cache, const Bundle& bundle,
                                     const std::vector<BundleFile>& files, const CopyOptions& options = {},
                                     const CopyProgress& onProgress = {}, std::stop_token stop = {});

[[nodiscard]] std::uint64_t bytesOf(const std::vector<BundleFile>& files);

}  // namespace evenkeel
