// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/event_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

namespace evenkeel::report {
namespace {

template <class Number>
void appendNumber(std::string& text, Number number) {
  for (unsigned i = 0; i < sizeof(Number); ++i) text += static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i) & 0xffU);
}

// Protocol buffers: a field is its number and kind in one byte, then a number of seven bits a byte, eight or four bytes, or a length and bytes.
constexpr char kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;
char key(int field, char kind) { return static_cast<char>(field << 3 | kind); }

void appendVarint(std::string& text, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7U) text += static_cast<char>(number | 0x80U);
  text += static_cast<char>(number);
}
void appendBytes(std::string& text, int field, std::string_view bytes) {
  text += key(field, kBytes);
  appendVarint(text, bytes.size());
  text += bytes;
}

/// The record format keeps sums of sums apart (tensorflow/core/lib/hash/crc32c.h).
std::uint32_t masked(std::uint32_t sum) { return (sum >> 15U | sum << 17U) + 0xa282ead8U; }

std::string eventAt(double seconds) {
  std::string event{key(1, kFixed64)};
  appendNumber(event, std::bit_cast<std::uint64_t>(seconds));
  return event;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> sums{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      sums[i] = i;
      for (int bit = 0; bit < 8; ++bit) sums[i] = sums[i] >> 1U ^ ((sums[i] & 1U) != 0 ? 0x82f63b78U : 0U);
    }
    return sums;
  }();
  std::uint32_t sum = ~0U;
  for (const char byte : bytes) sum = sum >> 8U ^ table[(sum ^ static_cast<unsigned char>(byte)) & 0xffU];
  return ~sum;
}

Result<EventFile> EventFile::create(const std::filesystem::path& folder, double seconds, const std::string& name) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return invalidInput(folder.string(), "cannot be made: " + failure.message(), "name another folder");
  EventFile made(folder / fmt::format("events.out.tfevents.{:010}.{}", static_cast<std::int64_t>(seconds), name));
  if (!made.stream_) return invalidInput(made.file_.string(), fmt::format("cannot be written: {}", std::strerror(errno)), "name another folder");
  std::string event = eventAt(seconds);
  appendBytes(event, 3, "brain.Event:2");
  made.addRecord(event);
  return made;
}

void EventFile::addScalar(const std::string& tag, std::int64_t step, double value, double seconds) {
  std::string scalar;
  appendBytes(scalar, 1, tag);
  scalar += key(2, kFixed32);
  appendNumber(scalar, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  std::string summary;
  appendBytes(summary, 1, scalar);
  std::string event = eventAt(seconds);
  event += key(2, kVarint);
  appendVarint(event, static_cast<std::uint64_t>(step));
  appendBytes(event, 5, summary);
  addRecord(event);
}

Result<void> EventFile::flush() {
  if (stream_.flush()) return {};
  return failed(file_.string(), "cannot be written: the disk is full or broken");
}

void EventFile::addRecord(std::string_view bytes) {
  std::string length, sum;
  appendNumber(length, static_cast<std::uint64_t>(bytes.size()));
  appendNumber(sum, masked(crc32c(length)));
  stream_ << length << sum << bytes;
  sum.clear();
  appendNumber(sum, masked(crc32c(bytes)));
  stream_ << sum;
}

}  // namespace evenkeel::report
