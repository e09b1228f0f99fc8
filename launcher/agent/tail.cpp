// SPDX-License-Identifier: GPL-3.0-or-later
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "launcher/agent/commands.h"
#include "launcher/agent/journal.h"
#include "launcher/agent/node_job.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

constexpr int kHeartbeatMs = 5000;

class Tail {
 public:
  Tail(std::int64_t from, Fd journal) : from_(from), journal_(std::move(journal)) {}

  /// Prints the whole lines that are there. False if nobody reads them.
  bool copy() {
    std::array<char, 1 << 16> chunk;
    ssize_t count = 0;
    while ((count = ::read(journal_.get(), chunk.data(), chunk.size())) > 0) {
      rest_.append(chunk.data(), static_cast<std::size_t>(count));
      std::string wanted;
      std::size_t begin = 0;
      for (std::size_t newline = rest_.find('\n'); newline != std::string::npos; newline = rest_.find('\n', begin)) {
        const std::string_view line(rest_.data() + begin, newline - begin);
        if (seqOf(line).value_or(0) >= from_) wanted.append(line).push_back('\n');
        isEnded_ = isEnded_ || isEnd(line);
        begin = newline + 1;
      }
      rest_.erase(0, begin);
      if (!print(wanted)) return false;
    }
    return true;
  }
  [[nodiscard]] bool isEnded() const { return isEnded_; }

  static bool print(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

 private:
  std::int64_t from_;
  Fd journal_;
  std::string rest_;
  bool isEnded_ = false;
};

}  // namespace

Result<TailEnd> tailJournal(const fs::path& directory, const TailOptions& options) {
  const fs::path file = directory / kJournalFile;
  Fd journal(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!journal.isOpen())
    return failed(file.string(), fmt::format("cannot be read: {}", ::strerror(errno)), "no run was started there");
  const Fd changes(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ::inotify_add_watch(changes.get(), file.c_str(), IN_MODIFY);  // before the first look, so that no change falls between
  auto record = loadAgentRecord(directory);
  const auto agent = record ? openProcess(record->pid, record->startTime) : std::nullopt;
  Tail tail(options.from, std::move(journal));
  bool isAgentGone = !agent;
  while (true) {
    if (!tail.copy()) return TailEnd::NobodyReads;
    if (tail.isEnded() || options.once) return TailEnd::Complete;
    if (isAgentGone) return TailEnd::Lost;  // known before the copy: nothing can have come since
    std::array<pollfd, 3> fds{{{changes.get(), POLLIN, 0}, {agent->get(), POLLIN, 0}, {STDOUT_FILENO, 0, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), kHeartbeatMs);
    if (ready == 0 && !Tail::print("\n")) return TailEnd::NobodyReads;
    if ((fds[2].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return TailEnd::NobodyReads;
    std::array<char, 4096> events;
    while (fds[0].revents != 0 && ::read(changes.get(), events.data(), events.size()) > 0) {
    }
    isAgentGone = fds[1].revents != 0;
  }
}

}  // namespace evenkeel
