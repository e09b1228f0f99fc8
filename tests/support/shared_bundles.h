// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "launcher/deploy/bundle.h"
#include "launcher/deploy/packed_file.h"

namespace evenkeel {

/// Lets a test's cache folder ($XDG_CACHE_HOME/evenkeel) use bundles that one test has made for all, in the build folder: made
/// and packed once after each build of the worker, while the others wait.
inline void shareBundles(const std::filesystem::path& cache) {
  namespace fs = std::filesystem;
  const fs::path programs = EVENKEEL_BIN_DIR, shared = programs.parent_path() / "tests" / "bundles";
  fs::create_directories(shared);
  const int lock = ::open((shared / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ::flock(lock, LOCK_EX);
  std::error_code failure;
  const auto made = fs::last_write_time(shared / "packed", failure);
  for (const std::string& program : kOurPrograms) {
    if (!failure && made > fs::last_write_time(programs / program)) continue;
    for (const char* folder : {"made", "packed"}) fs::remove_all(shared / folder);  // of an older build
    break;
  }
  if (!fs::exists(shared / "packed")) {
    if (const auto bundle = slimBundle(programs, shared); bundle) {
      for (const BundleFile& file : bundle->files) (void)packedFile(file, shared / "packed", packersHere().front());
    }
  }
  ::close(lock);
  fs::create_directories(cache);
  for (const char* folder : {"made", "packed"}) fs::create_directory_symlink(shared / folder, cache / folder, failure);
}

}  // namespace evenkeel
