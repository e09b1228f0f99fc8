// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/json_reader.h"

namespace evenkeel {
namespace {

constexpr std::int64_t kLengthBytes = 8;
constexpr std::int64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr std::int64_t kMost = std::int64_t{1} << 60U;

std::int64_t bytesOfType(const std::string& type) {
  if (type == "F64" || type == "I64" || type == "U64") return 8;
  if (type == "F32" || type == "I32" || type == "U32") return 4;
  if (type == "F16" || type == "BF16" || type == "I16" || type == "U16") return 2;
  if (type == "I8" || type == "U8" || type == "BOOL") return 1;
  return 0;
}

Result<void> readAt(int descriptor, std::int64_t position, char* to, std::int64_t count, const std::string& file) {
  while (count > 0) {
    const ssize_t got = ::pread(descriptor, to, static_cast<std::size_t>(count), position);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(file, std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) return invalidInput(file, fmt::format("is cut off: {} bytes are missing", count));
    position += got;
    to += got;
    count -= got;
  }
  return {};
}

/// IEEE half precision: 1 sign, 5 exponent and 10 fraction bits.
float floatOfHalf(std::uint16_t half) {
  const bool isNegative = (half & 0x8000U) != 0;
  const int exponent = half >> 10U & 0x1fU, fraction = half & 0x3ffU;
  float value = 0;
  if (exponent == 0x1f) value = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  else if (exponent == 0) value = std::ldexp(static_cast<float>(fraction), -24);
  else value = std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
  return isNegative ? -value : value;
}

/// The upper half of a float.
float floatOfBrain(std::uint16_t half) { return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16U); }

StoredTensor readEntry(JsonReader& reader, std::string name) {
  StoredTensor tensor;
  tensor.name = std::move(name);
  tensor.type = reader.text("dtype");
  std::int64_t bytes = bytesOfType(tensor.type);
  if (bytes == 0) reader.fail("dtype", fmt::format("is \"{}\"", tensor.type.substr(0, 40)), "expected F32, BF16 or another of the format's types");
  if (!reader.raw("shape").empty()) tensor.shape = reader.integers("shape", {0, kMost});  // [] is one number
  for (const std::int64_t size : tensor.shape) {
    if (size > 0 && bytes > kMost / size) reader.fail("shape", "is too large");
    if (!reader.context().error) bytes *= size;
  }
  const auto offsets = reader.integers("data_offsets", {0, kMost});
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    reader.fail("data_offsets", "are not two rising numbers");
    return tensor;
  }
  tensor.first = offsets[0];
  tensor.last = offsets[1];
  if (!reader.context().error && tensor.last - tensor.first != bytes)
    reader.fail("data_offsets", fmt::format("hold {} bytes, but the shape needs {}", tensor.last - tensor.first, bytes));
  return tensor;
}

}  // namespace

std::string safetensorsHeader(const std::vector<StoredTensor>& tensors, const std::map<std::string, std::string>& metadata) {
  Json json = Json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  for (const StoredTensor& tensor : tensors)
    json[tensor.name] = {{"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {tensor.first, tensor.last}}};
  std::string text = json.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string header;
  for (unsigned shift = 0; shift < 64; shift += 8) header += static_cast<char>(static_cast<std::uint64_t>(text.size()) >> shift & 0xffU);
  return header + text;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return invalidInput(file.string(), std::string("cannot be opened: ") + std::strerror(errno));
  SafetensorsFile opened(file, descriptor);
  if (auto read = opened.readHeader(); !read) return read.error();
  return opened;
}

Result<void> SafetensorsFile::readHeader() {
  const std::string where = file_.string();
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return invalidInput(where, "is no regular file");
  const std::int64_t size = status.st_size;
  std::string start(static_cast<std::size_t>(std::min<std::int64_t>(size, 64)), '\0');
  if (auto read = readAt(descriptor_, 0, start.data(), static_cast<std::int64_t>(start.size()), where); !read) return read;
  if (start.starts_with("version https://git-lfs"))
    return invalidInput(where, "is a Git LFS pointer file, not the file that it points to", "fetch it with `git lfs pull`");
  if (size < kLengthBytes) return invalidInput(where, fmt::format("is cut off: it has {} bytes", size), "expected a safetensors file");
  std::uint64_t length = 0;
  for (unsigned i = 0; i < 8; ++i) length |= static_cast<std::uint64_t>(static_cast<unsigned char>(start[i])) << (8 * i);
  if (length > static_cast<std::uint64_t>(kLongestHeader))
    return invalidInput(where, fmt::format("says that its header has {} bytes; the format allows {}", length, kLongestHeader), "expected a safetensors file");
  const auto headerBytes = static_cast<std::int64_t>(length);
  if (kLengthBytes + headerBytes > size) return invalidInput(where, fmt::format("is cut off: {} bytes are missing from its header", kLengthBytes + headerBytes - size));
  std::string text(length, '\0');
  if (auto read = readAt(descriptor_, kLengthBytes, text.data(), headerBytes, where); !read) return read;
  const auto json = parseJson(text, where + ", header");
  if (!json) return json.error();
  if (!json->is_object()) return invalidInput(where + ", header", "is no object");
  JsonContext context{where + ", header", {}};
  for (const auto& [name, entry] : json->items()) {
    if (name == "__metadata__") continue;
    JsonReader reader(entry, context, "/" + name.substr(0, 80));
    tensors_.push_back(readEntry(reader, name));
    if (context.error) return *std::move(context.error);
  }
  dataBegin_ = kLengthBytes + headerBytes;
  std::vector<const StoredTensor*> byOffset;
  for (const StoredTensor& tensor : tensors_) byOffset.push_back(&tensor);
  std::ranges::sort(byOffset, {}, [](const StoredTensor* tensor) { return std::pair(tensor->first, tensor->last); });
  std::int64_t end = 0;
  for (const StoredTensor* tensor : byOffset) {
    if (tensor->first != end) return invalidInput(where, fmt::format("has a gap or an overlap before {}", tensor->name.substr(0, 80)));
    end = tensor->last;
  }
  if (dataBegin_ + end > size) return invalidInput(where, fmt::format("is cut off: {} bytes are missing", dataBegin_ + end - size));
  if (dataBegin_ + end < size) return invalidInput(where, fmt::format("has {} bytes more than its header says", size - dataBegin_ - end));
  return {};
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : file_(std::move(other.file_)), descriptor_(std::exchange(other.descriptor_, -1)), dataBegin_(other.dataBegin_), tensors_(std::move(other.tensors_)) {}

SafetensorsFile::~SafetensorsFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

const StoredTensor* SafetensorsFile::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors_, name, &StoredTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

Result<void> SafetensorsFile::read(const StoredTensor& tensor, std::span<float> values) const {
  const std::string where = file_.string();
  const bool isHalf = tensor.type == "F16" || tensor.type == "BF16";
  if (tensor.type != "F32" && !isHalf)
    return invalidInput(where, fmt::format("{} is of type {}", tensor.name, tensor.type), "expected F32, BF16 or F16");
  const auto bytes = static_cast<std::int64_t>(values.size()) * bytesOfType(tensor.type);
  if (tensor.last - tensor.first != bytes)
    return invalidInput(where, fmt::format("{} has {} bytes, {} are needed", tensor.name, tensor.last - tensor.first, bytes));
  if (!isHalf) return readAt(descriptor_, dataBegin_ + tensor.first, reinterpret_cast<char*>(values.data()), bytes, where);
  std::vector<std::uint16_t> halves(values.size());
  if (auto read = readAt(descriptor_, dataBegin_ + tensor.first, reinterpret_cast<char*>(halves.data()), bytes, where); !read) return read;
  std::ranges::transform(halves, values.begin(), tensor.type == "F16" ? floatOfHalf : floatOfBrain);
  return {};
}

}  // namespace evenkeel
