// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/deploy/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "core/base/sha256.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

Result<BundleFile> readProgram(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || !fs::is_regular_file(file))
    return invalidInput(file.string(), "no such program", "build it, or name the folder of the programs");
  BundleFile program{.name = file.filename().string(), .file = file, .isProgram = true};
  Sha256 hash;
  std::string chunk(std::size_t{1} << 20U, '\0');
  while (stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || stream.gcount() > 0) {
    hash.update({chunk.data(), static_cast<std::size_t>(stream.gcount())});
    program.bytes += static_cast<std::uint64_t>(stream.gcount());
  }
  program.sha256 = hash.finish();
  return program;
}

}  // namespace

std::uint64_t bytesOf(const std::vector<BundleFile>& files) {
  return std::accumulate(files.begin(), files.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const BundleFile& file) { return sum + file.bytes; });
}

Result<Bundle> programBundle(const fs::path& programs) {
  Bundle bundle;
  std::string content;
  for (const char* name : {"evenkeel-agent", "evenkeel-worker"}) {
    auto file = readProgram(programs / name);
    if (!file) return std::move(file).error();
    content += file->sha256 + " " + file->name + "\n";
    bundle.files.push_back(*std::move(file));
  }
  bundle.directory = "bundles/" + sha256(content).substr(0, 32);
  return bundle;
}

Result<std::vector<BundleFile>> missingFiles(Host& host, const std::string& cache, const Bundle& bundle,
                                             std::chrono::milliseconds deadline, std::stop_token stop) {
  std::vector<std::string> argv{"sh", "-c", R"(cd -- "$1" 2>/dev/null || exit 0; shift; sha256sum -- "$@" 2>/dev/null; exit 0)",
                                "sh", cache + "/" + bundle.directory};
  for (const BundleFile& file : bundle.files) argv.push_back(file.name);
  auto looked = run(host, {.argv = std::move(argv), .deadline = deadline}, std::move(stop));
  if (!looked) return std::move(looked).error();
  std::map<std::string, std::string> present;  // name -> checksum
  std::istringstream lines(looked->out);
  for (std::string line; std::getline(lines, line);) {  // 64 digits, two characters, the name
    if (line.size() > 66) present[line.substr(66)] = line.substr(0, 64);
  }
  std::vector<BundleFile> missing;
  for (const BundleFile& file : bundle.files) {
    const auto found = present.find(file.name);
    if (found == present.end() || found->second != file.sha256) missing.push_back(file);
  }
  return missing;
}

Result<void> copyFiles(Host& host, const std::string& cache, const Bundle& bundle, const std::vector<BundleFile>& files,
                       const CopyProgress& onProgress, std::stop_token stop) {
  const std::uint64_t total = bytesOf(files);
  std::uint64_t before = 0;
  for (const BundleFile& file : files) {
    const auto tell = [&](std::uint64_t done) {
      if (onProgress) onProgress(before + done, total);
    };
    auto put = upload(host,
                      {.file = file.file.string(),
                       .path = cache + "/" + bundle.directory + "/" + file.name,
                       .sha256 = file.sha256,
                       .isProgram = file.isProgram,
                       .onProgress = tell},
                      stop);
    if (!put) return put.error();
    before += file.bytes;
  }
  return {};
}

}  // namespace evenkeel
