// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/token_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

// NAME.idx (Megatron-LM, megatron/core/datasets/indexed_dataset.py): magic, version, kind of number, counts; then of each sequence its length and where it begins
// in bytes, and of each document its first sequence, with the count of all sequences behind them.
constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr std::string_view kOldMagic("TNTIDX\0\0", 8);
constexpr std::int64_t kHeaderBytes = 9 + 8 + 1 + 8 + 8;
constexpr std::array<std::string_view, 9> kKinds = {"", "uint8", "int8", "int16", "int32", "int64", "float64", "float32", "uint16"};

template <class Number>
Number littleEndian(const char* bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < sizeof(Number); ++i) value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return static_cast<Number>(value);
}

template <class Number>
void append(std::string& text, Number number) {
  for (unsigned i = 0; i < sizeof(Number); ++i) text += static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i) & 0xffU);
}

/// Calls `take` with every number of an array in the stream; false if the file ends before.
template <class Number, class Take>
bool eachNumber(std::ifstream& stream, std::int64_t count, const Take& take) {
  constexpr std::int64_t kAtOnce = 1 << 16;
  std::string piece;
  for (std::int64_t done = 0; done < count; done += kAtOnce) {
    const auto numbers = static_cast<std::size_t>(std::min(kAtOnce, count - done));
    piece.resize(numbers * sizeof(Number));
    if (!stream.read(piece.data(), static_cast<std::streamsize>(piece.size()))) return false;
    for (std::size_t i = 0; i < numbers; ++i) take(done + static_cast<std::int64_t>(i), littleEndian<Number>(piece.data() + i * sizeof(Number)));
  }
  return true;
}

constexpr const char* kAgain = "write the pair again, with `evenkeel-cli tokenize encode` or Megatron-LM's preprocess_data.py";

}  // namespace

std::string_view name(TokenType type) { return kTokenTypes[static_cast<std::size_t>(type)].first; }

int bytesOf(TokenType type) {
  switch (type) {
    case TokenType::Uint8: return 1;
    case TokenType::Uint16:
    case TokenType::Int16: return 2;
    case TokenType::Int32: return 4;
    case TokenType::Int64: break;
  }
  return 8;
}

std::int64_t tokenAt(const std::uint8_t* bytes, TokenType type) {
  const char* const from = reinterpret_cast<const char*>(bytes);
  switch (type) {
    case TokenType::Uint8: return *bytes;
    case TokenType::Uint16: return littleEndian<std::uint16_t>(from);
    case TokenType::Int16: return littleEndian<std::int16_t>(from);
    case TokenType::Int32: return littleEndian<std::int32_t>(from);
    case TokenType::Int64: break;
  }
  return littleEndian<std::int64_t>(from);
}

std::optional<TokenFiles> tokenFilesNamed(const std::string& text) {
  const bool hasEnding = text.ends_with(".bin") || text.ends_with(".idx");
  const std::string stem = hasEnding ? text.substr(0, text.size() - 4) : text;
  TokenFiles files{.bin = stem + ".bin", .idx = stem + ".idx"};
  std::error_code failure;
  const bool hasBin = fs::exists(files.bin, failure), hasIdx = fs::exists(files.idx, failure);
  // Half a pair is named, too: bytes of tokens must not be taken for text.
  const bool isMeant = (hasBin && hasIdx) || ((hasBin || hasIdx) && (hasEnding || !fs::exists(text, failure)));
  return isMeant ? std::optional(files) : std::nullopt;
}

Result<TokenFiles> openTokenFiles(const TokenFiles& named) {
  TokenFiles files = named;
  const std::string where = files.idx.string();
  std::error_code failure;
  const auto binBytes = static_cast<std::int64_t>(fs::file_size(files.bin, failure));
  if (failure) return invalidInput(files.bin.string(), "cannot be read: " + failure.message(), "it belongs beside " + where);
  const auto bytes = static_cast<std::int64_t>(fs::file_size(files.idx, failure));
  std::ifstream stream(files.idx, std::ios::binary);
  if (failure || !stream) {
    return invalidInput(where, fmt::format("cannot be read: {}", failure ? failure.message() : std::strerror(errno)),
                        fmt::format("it belongs beside {}; text has to have another ending than .bin", files.bin.string()));
  }
  std::string header(static_cast<std::size_t>(std::min(bytes, kHeaderBytes)), '\0');
  stream.read(header.data(), static_cast<std::streamsize>(header.size()));
  if (header.starts_with(kOldMagic)) return invalidInput(where, "is of fairseq's old format (TNTIDX)", kAgain);
  if (header.starts_with("version https://git-lfs"))
    return invalidInput(where, "is a Git LFS pointer file, not the file that it points to", "fetch it with `git lfs pull`");
  if (!header.starts_with(kMagic)) return invalidInput(where, "is no index of Megatron-LM: it does not begin with MMIDIDX", kAgain);
  if (bytes < kHeaderBytes) return invalidInput(where, fmt::format("is cut off: it has {} bytes", bytes), kAgain);
  const auto version = littleEndian<std::uint64_t>(header.data() + 9);
  if (version != 1) return invalidInput(where, fmt::format("is of version {}", version), "expected version 1");
  const auto kind = static_cast<std::size_t>(static_cast<unsigned char>(header[17]));
  const std::string_view kindName = kind < kKinds.size() ? kKinds[kind] : "";
  const auto type = std::ranges::find(kTokenTypes, kindName, &std::pair<std::string_view, TokenType>::first);
  if (type == kTokenTypes.end())
    return invalidInput(where, kindName.empty() ? fmt::format("holds numbers of an unknown kind, {}", kind) : fmt::format("holds {} numbers, which are no tokens", kindName), "expected uint8, uint16, int16, int32 or int64");
  files.type = type->second;
  const auto sequences = littleEndian<std::uint64_t>(header.data() + 18), bounds = littleEndian<std::uint64_t>(header.data() + 26);
  const auto rest = static_cast<std::uint64_t>(bytes - kHeaderBytes);
  if (sequences > rest / 12 || bounds > rest / 8 || sequences * 12 + bounds * 8 > rest)
    return invalidInput(where, fmt::format("is cut off: it has {} bytes, too few for {} sequences and {} documents", bytes, sequences, bounds == 0 ? 0 : bounds - 1), kAgain);
  const std::uint64_t expected = sequences * 12 + bounds * 8;
  if (rest != expected && rest != expected + sequences)  // with a byte for each sequence: which of several kinds of data it is
    return invalidInput(where, fmt::format("has {} bytes more than its header says", rest - expected), kAgain);
  files.sequences = static_cast<std::int64_t>(sequences);

  const std::int64_t width = bytesOf(files.type);
  std::optional<Error> wrong;
  const auto say = [&](std::string what) {
    if (!wrong) wrong = invalidInput(where, std::move(what), kAgain);
  };
  std::vector<std::int32_t> lengths;
  lengths.reserve(sequences);
  bool isWhole = eachNumber<std::int32_t>(stream, files.sequences, [&](std::int64_t i, std::int32_t length) {
    if (length < 0) say(fmt::format("says that sequence {} has {} tokens", i, length));
    lengths.push_back(length);
    files.tokens += length;
  });
  std::int64_t place = 0;
  isWhole = isWhole && eachNumber<std::int64_t>(stream, files.sequences, [&](std::int64_t i, std::int64_t begin) {
    if (begin != place) say(fmt::format("says that sequence {} begins at byte {}, but the one before it ends at {}", i, begin, place));
    place += lengths[static_cast<std::size_t>(i)] * width;
  });
  std::int64_t last = 0;
  isWhole = isWhole && eachNumber<std::int64_t>(stream, static_cast<std::int64_t>(bounds), [&](std::int64_t i, std::int64_t first) {
    if (i == 0 && first != 0) say(fmt::format("says that the first document begins with sequence {}", first));
    if (first < last) say(fmt::format("says that document {} begins before the one in front of it", i));
    last = std::max(last, first);
  });
  if (!isWhole) return failed(where, "cannot be read to its end");
  if (wrong) return *std::move(wrong);
  if (bounds == 0 || last != files.sequences)
    return invalidInput(where, fmt::format("says that its documents end with sequence {} of {}", last, files.sequences), kAgain);
  files.documents = static_cast<std::int64_t>(bounds) - 1;
  if (binBytes != files.tokens * width)
    return invalidInput(files.bin.string(), fmt::format("has {} bytes, but {} says {} tokens of {} bytes", binBytes, where, files.tokens, width), kAgain);
  if (files.tokens == 0) return invalidInput(files.bin.string(), "holds no tokens", "give a file with some");
  return files;
}

std::string tokenIndex(TokenType type, const std::vector<std::int32_t>& lengths) {
  std::string text(kMagic);
  append<std::uint64_t>(text, 1);
  const auto kind = std::ranges::find(kKinds, name(type)) - kKinds.begin();
  text += static_cast<char>(kind);
  append<std::uint64_t>(text, lengths.size());
  append<std::uint64_t>(text, lengths.size() + 1);
  for (const std::int32_t length : lengths) append(text, length);
  std::int64_t place = 0;
  for (const std::int32_t length : lengths) {
    append(text, place);
    place += std::int64_t{length} * bytesOf(type);
  }
  for (std::size_t i = 0; i <= lengths.size(); ++i) append(text, static_cast<std::int64_t>(i));
  return text;
}

}  // namespace evenkeel
