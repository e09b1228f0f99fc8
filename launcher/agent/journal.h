// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/json.h"
#include "launcher/agent/processes.h"

namespace evenkeel {

/// Appends records to a run's journal: numbered from 1 without gaps, a whole line with each write, so that a reader never
/// takes half of one for a record.
class Journal {
 public:
  /// Makes the file; one that exists already is an Error, because a run's directory is used once. Mode 0600.
  [[nodiscard]] static Result<Journal> create(const std::filesystem::path& file);

  /// `fields` are those of the event; seq, time and rank are ours. Once there is no room (disk full) or a write has failed
  /// nothing more is written and broken() says why.
  void append(int rank, std::string_view event, const Json& fields);
  /// The same for the few records that say how it ended: room was kept for them while there was some.
  void appendLastWords(int rank, std::string_view event, const Json& fields);
  [[nodiscard]] const std::optional<Error>& broken() const { return broken_; }

 private:
  Journal(std::filesystem::path file, Fd fd) : file_(std::move(file)), fd_(std::move(fd)) {}
  std::filesystem::path file_;
  void makeRoom(std::size_t bytes);
  void write(int rank, std::string_view event, const Json& fields);

  Fd fd_;
  std::int64_t lastSeq_ = 0;
  std::int64_t size_ = 0, reserved_ = 0;  // bytes: of whole records; that the file system has promised
  bool canReserve_ = true;
  std::optional<Error> broken_;
};

/// The number of a journal's line, read from its begin; nothing if it is no record.
[[nodiscard]] std::optional<std::int64_t> seqOf(std::string_view line);
/// True for the last record of a journal.
[[nodiscard]] bool isEnd(std::string_view line);

/// The last whole record; nothing if there is none yet.
[[nodiscard]] Result<std::optional<Json>> lastRecord(const std::filesystem::path& file);

}  // namespace evenkeel
