// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace evenkeel::report {

/// A file that TensorBoard draws curves from: records of length, bytes and CRC-32C sums, each an Event of protocol buffers (tensorflow/core/util/event.proto,
/// summary.proto; a scalar is a Summary with one Value). What was added lies in the file after flush(), so that a curve can be watched while it grows.
class EventFile {
 public:
  /// Makes events.out.tfevents.TIME.NAME in the folder, which is made if it lacks; `seconds` since 1970.
  [[nodiscard]] static Result<EventFile> create(const std::filesystem::path& folder, double seconds, const std::string& name);

  void addScalar(const std::string& tag, std::int64_t step, double value, double seconds);
  /// Fails when the disk is full.
  [[nodiscard]] Result<void> flush();
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  explicit EventFile(std::filesystem::path file) : file_(std::move(file)), stream_(file_, std::ios::binary) {}
  void addRecord(std::string_view bytes);

  std::filesystem::path file_;
  std::ofstream stream_;
};

/// CRC-32C (Castagnoli).
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

}  // namespace evenkeel::report
