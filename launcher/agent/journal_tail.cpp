// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/agent/journal_tail.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "launcher/agent/journal.h"

namespace evenkeel {

bool JournalTail::open(const std::filesystem::path& file) {
  Fd journal(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!journal.isOpen()) return false;
  journal_ = std::move(journal);
  return true;
}

bool JournalTail::copy() {
  std::array<char, 1 << 16> chunk;
  ssize_t count = 0;
  while ((count = ::pread(journal_.get(), chunk.data(), chunk.size(), position_)) > 0) {
    position_ += count;
    rest_.append(chunk.data(), static_cast<std::size_t>(count));
    std::string wanted;
    std::size_t begin = 0;
    for (std::size_t newline = rest_.find('\n'); newline != std::string::npos; newline = rest_.find('\n', begin)) {
      const std::string_view line(rest_.data() + begin, newline - begin);
      if (seqOf(line).value_or(0) >= from_) wanted.append(prefix_).append(line).push_back('\n');
      if (isEnd(line)) {
        isEnded_ = true;
        isFinished_ = line.find(R"("state":"finished")") != std::string_view::npos;
      }
      begin = newline + 1;
    }
    rest_.erase(0, begin);
    if (!print(wanted)) return false;
  }
  return true;
}

bool JournalTail::print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace evenkeel
