// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "launcher/agent/commands.h"
#include "launcher/agent/journal_tail.h"
#include "launcher/agent/node_job.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

constexpr int kHeartbeatMs = 5000;

}  // namespace

Result<TailEnd> tailJournal(const fs::path& directory, const TailOptions& options) {
  const fs::path file = directory / kJournalFile;
  JournalTail tail(options.from);
  if (!tail.open(file))
    return failed(file.string(), fmt::format("cannot be read: {}", ::strerror(errno)), "no run was started there");
  const Fd changes(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ::inotify_add_watch(changes.get(), file.c_str(), IN_MODIFY);  // before the first look, so that no change falls between
  auto record = loadAgentRecord(directory);
  const auto agent = record ? openProcess(record->pid, record->startTime) : std::nullopt;
  bool isAgentGone = !agent;
  while (true) {
    if (!tail.copy()) return TailEnd::NobodyReads;
    if (tail.isEnded() || options.once) return TailEnd::Complete;
    if (isAgentGone) return TailEnd::Lost;  // known before the copy: nothing can have come since
    std::array<pollfd, 3> fds{{{changes.get(), POLLIN, 0}, {agent->get(), POLLIN, 0}, {STDOUT_FILENO, 0, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), kHeartbeatMs);
    if (ready == 0 && !JournalTail::print("\n")) return TailEnd::NobodyReads;
    if ((fds[2].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return TailEnd::NobodyReads;
    std::array<char, 4096> events;
    while (fds[0].revents != 0 && ::read(changes.get(), events.data(), events.size()) > 0) {
    }
    isAgentGone = fds[1].revents != 0;
  }
}

}  // namespace evenkeel
