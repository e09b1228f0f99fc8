// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/agent/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <fstream>
#include <utility>

namespace evenkeel {
namespace {

constexpr std::string_view kSeqPrefix = R"({"seq":)";
constexpr std::int64_t kReserve = std::int64_t{256} << 10;   // asked for at a time
constexpr std::int64_t kLastWords = std::int64_t{64} << 10;  // of it, kept back
constexpr std::int64_t kTailBytes = std::int64_t{4} << 20;  // more than the longest record

double secondsSince1970() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

Result<Journal> Journal::create(const std::filesystem::path& file) {
  Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
  if (fd.isOpen()) return Journal(file, std::move(fd));
  if (errno == EEXIST) return failed(file.string(), "exists: this run was started here before", "start a new run");
  return failed(file.string(), fmt::format("cannot be made: {}", ::strerror(errno)));
}

void Journal::makeRoom(std::size_t bytes) {
  const std::int64_t needed = size_ + static_cast<std::int64_t>(bytes) + kLastWords;
  if (!canReserve_ || needed <= reserved_) return;
  const std::int64_t end = needed + kReserve;
  if (::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, end) == 0) {
    reserved_ = end;
  } else if (errno == ENOSPC || errno == EDQUOT) {
    broken_ = failed(file_.string(), fmt::format("cannot be written: {}", ::strerror(errno)), "free some space there");
  } else {
    canReserve_ = false;  // not every file system can
  }
}

void Journal::append(int rank, std::string_view event, const Json& fields) {
  if (!broken_) write(rank, event, fields);
}

void Journal::appendLastWords(int rank, std::string_view event, const Json& fields) {
  const std::optional<Error> before = std::exchange(broken_, std::nullopt);
  // half a record that a full disk has left is no record
  if (before && ::ftruncate(fd_.get(), size_) != 0) return;
  canReserve_ = false;
  write(rank, event, fields);
  if (before) broken_ = before;
}

void Journal::write(int rank, std::string_view event, const Json& fields) {
  Json record;
  record["seq"] = lastSeq_ + 1;
  record["time"] = secondsSince1970();
  record["rank"] = rank;
  record["event"] = event;
  if (fields.is_object()) {
    for (const auto& [key, value] : fields.items()) {
      if (!record.contains(key)) record[key] = value;
    }
  }
  const std::string line = record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  makeRoom(line.size());
  if (broken_) return;
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      broken_ = failed(file_.string(), fmt::format("cannot be written: {}", ::strerror(errno)));
      return;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  ++lastSeq_;
  size_ += static_cast<std::int64_t>(line.size());
}

std::optional<std::int64_t> seqOf(std::string_view line) {
  if (!line.starts_with(kSeqPrefix)) return std::nullopt;
  line.remove_prefix(kSeqPrefix.size());
  std::int64_t seq = 0;
  const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), seq);
  if (failure != std::errc{} || end == line.data() + line.size() || *end != ',') return std::nullopt;
  return seq;
}

bool isEnd(std::string_view line) {
  // "event" is the fourth field of our own writing, so that this is no word from inside a log text
  return line.substr(0, 120).find(R"("rank":-1,"event":"ended")") != std::string_view::npos;
}

Result<std::optional<Json>> lastRecord(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) return invalidInput(file.string(), "no such journal");
  const std::int64_t size = stream.tellg();
  const std::int64_t start = std::max<std::int64_t>(0, size - kTailBytes);
  stream.seekg(start);
  std::string tail(static_cast<std::size_t>(size - start), '\0');
  stream.read(tail.data(), size - start);
  const std::size_t end = tail.rfind('\n');
  if (end == std::string::npos || end == 0) return std::optional<Json>{};
  const std::size_t before = tail.rfind('\n', end - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  auto record = parseJson(std::string_view(tail).substr(begin, end - begin), file.string());
  if (!record) return std::move(record).error();
  return std::optional<Json>(*std::move(record));
}

}  // namespace evenkeel
