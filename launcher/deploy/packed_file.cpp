// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/deploy/packed_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <mutex>

#include "launcher/ssh/local_host.h"

namespace evenkeel {

namespace fs = std::filesystem;

std::vector<std::string> packersHere() {
  std::vector<std::string> found;
  LocalHost here("this machine");
  for (const char* packer : {"zstd", "gzip"}) {
    const auto looked =
        run(here, {.argv = {"sh", "-c", "command -v \"$1\"", "sh", packer}, .deadline = std::chrono::seconds(10)});
    if (looked && looked->ending.wasGood()) found.emplace_back(packer);
  }
  return found;
}

Result<fs::path> packedFile(const BundleFile& file, const fs::path& folder, const std::string& packer) {
  static std::mutex mutex;  // two threads that pack the same file would do the work twice
  const std::lock_guard lock(mutex);
  const fs::path packed = folder / (file.sha256 + "." + packer);
  std::error_code failure;
  if (fs::exists(packed, failure)) return packed;
  fs::create_directories(folder, failure);
  const fs::path part = folder / fmt::format("{}.{}.part", file.sha256, ::getpid());
  std::ofstream stream(part, std::ios::binary | std::ios::trunc);
  LocalHost here("this machine");
  std::string complaint;
  const auto ran = here.execute(
      {.argv = {packer, packer == "zstd" ? "-3" : "-6", "-c", std::filesystem::canonical(file.file).string()},
       .onOutput = [&](std::string_view piece) { stream.write(piece.data(), static_cast<std::streamsize>(piece.size())); },
       .onErrorOutput = [&](std::string_view piece) { complaint += piece; },
       .silence = std::chrono::seconds(120)});
  stream.close();
  if (ran && ran->wasGood() && stream) {
    fs::permissions(part, fs::perms::owner_read | fs::perms::owner_write, failure);
    fs::rename(part, packed, failure);
    if (!failure) return packed;
  }
  fs::remove(part, failure);
  if (!ran) return ran.error();
  return failed(file.file.string(),
                fmt::format("cannot be packed by {} ({}): {}", packer, ran->text(), complaint.substr(0, 200)));
}

}  // namespace evenkeel
