// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "launcher/agent/processes.h"

namespace evenkeel {

/// Copies the records of a journal that grows to stdout.
class JournalTail {
 public:
  /// Records from number `from` on, each line behind `prefix`.
  explicit JournalTail(std::int64_t from, std::string prefix = {}) : from_(from), prefix_(std::move(prefix)) {}

  /// Opens the file, or opens it again at the same place: what another machine has written to a shared file system is seen by
  /// whoever opens the file after that. False if it cannot be opened.
  bool open(const std::filesystem::path& file);
  [[nodiscard]] bool isOpen() const { return journal_.isOpen(); }

  /// Prints the whole lines that are there. False if nobody reads them.
  bool copy();
  [[nodiscard]] bool isEnded() const { return isEnded_; }
  /// It has ended well.
  [[nodiscard]] bool isFinished() const { return isFinished_; }

  /// Writes to stdout; false if nobody reads it.
  static bool print(std::string_view text);

 private:
  std::int64_t from_;
  std::string prefix_;
  Fd journal_;
  std::int64_t position_ = 0;  // of what was read
  std::string rest_;           // of it: a line that is not whole yet
  bool isEnded_ = false, isFinished_ = false;
};

}  // namespace evenkeel
