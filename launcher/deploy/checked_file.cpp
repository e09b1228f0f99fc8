// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/deploy/checked_file.h"

#include <fstream>

#include "core/base/sha256.h"

namespace evenkeel {

Result<BundleFile> checkedFile(const std::filesystem::path& file, const std::string& name) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || !std::filesystem::is_regular_file(file))
    return invalidInput(file.string(), "no such program", "build it, or name the folder of the programs");
  BundleFile checked{.name = name, .file = file};
  Sha256 hash;
  std::string chunk(std::size_t{1} << 20U, '\0');
  while (stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || stream.gcount() > 0) {
    hash.update({chunk.data(), static_cast<std::size_t>(stream.gcount())});
    checked.bytes += static_cast<std::uint64_t>(stream.gcount());
  }
  checked.sha256 = hash.finish();
  return checked;
}

std::string directoryOf(const std::vector<BundleFile>& files) {
  std::string content;
  for (const BundleFile& file : files) content += file.sha256 + " " + file.name + "\n";
  return "bundles/" + sha256(content).substr(0, 32);
}

}  // namespace evenkeel
