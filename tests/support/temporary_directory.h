// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace evenkeel {

/// A folder for one test, gone with it. Its name holds what people's folders hold: a space, a quote, letters beyond ASCII, unless
/// the test needs a plain one.
class TemporaryDirectory {
 public:
  enum class Name { Odd, Plain };
  explicit TemporaryDirectory(Name kind = Name::Odd) {
    std::string name = (std::filesystem::temp_directory_path() / (kind == Name::Odd ? "evenkeel it's größe XXXXXX" : "evenkeel-XXXXXX")).string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file in it and returns its path.
  std::string file(const std::string& name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace evenkeel
