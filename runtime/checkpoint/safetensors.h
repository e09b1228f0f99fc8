// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace evenkeel {

/// A tensor of a safetensors file: row by row from byte `first` to before byte `last` of what follows the header.
struct StoredTensor {
  std::string name;
  std::string type = "F32";
  std::vector<std::int64_t> shape;
  std::int64_t first = 0, last = 0;
  bool operator==(const StoredTensor&) const = default;
};

/// The first bytes of a safetensors file: 8 bytes of length, little-endian, and the JSON header, padded to a multiple of 8. The tensors'
/// offsets must stand and follow each other without gaps.
[[nodiscard]] std::string safetensorsHeader(const std::vector<StoredTensor>& tensors, const std::map<std::string, std::string>& metadata);

/// A safetensors file that was opened and checked: what its header says lies in the file, no more and no less, and nothing overlaps
/// (github.com/huggingface/safetensors, "Format").
class SafetensorsFile {
 public:
  /// Says in words what is wrong with a file: a Git LFS pointer in its place (airllm #137), cut off (how many bytes are missing), a header
  /// that is too long or no JSON (safetensors #668), offsets that do not fit.
  [[nodiscard]] static Result<SafetensorsFile> open(const std::filesystem::path& file);

  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;
  ~SafetensorsFile();

  /// In the order of the header.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  [[nodiscard]] const StoredTensor* find(const std::string& name) const;
  /// Reads a tensor of type F32, BF16 or F16 whole; values has as many elements as its shape.
  [[nodiscard]] Result<void> read(const StoredTensor& tensor, std::span<float> values) const;

 private:
  SafetensorsFile(std::filesystem::path file, int descriptor) : file_(std::move(file)), descriptor_(descriptor) {}
  Result<void> readHeader();

  std::filesystem::path file_;
  int descriptor_;
  std::int64_t dataBegin_ = 0;
  std::vector<StoredTensor> tensors_;
};

}  // namespace evenkeel
