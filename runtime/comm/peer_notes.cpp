// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/comm/peer_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <sstream>

#include "runtime/device/compute_clock.h"

namespace evenkeel {
namespace {

constexpr std::string_view kWrittenOff = "gone";

std::string noteOf(int rank) { return fmt::format("waits/{}", rank); }

}  // namespace

void PeerNotes::waitingFor(const std::vector<int>& peers) {
  (void)rendezvous_.publish(noteOf(rank_),
                            fmt::format("{}", fmt::join(peers, " ")));  // the store may be gone: then nobody reads it
}

void PeerNotes::noLongerWaiting() { (void)rendezvous_.publish(noteOf(rank_), ""); }

void PeerNotes::writeOff(int rank) { (void)rendezvous_.publish(noteOf(rank), std::string(kWrittenOff)); }

std::vector<int> PeerNotes::withoutNote(const std::vector<int>& peers, Seconds patience) {
  const auto start = SteadyClock::now();
  std::set<int> known = {rank_}, silent;
  std::vector<int> open = peers;
  while (!open.empty()) {
    std::vector<std::string> names;
    std::vector<int> asked;
    for (const int peer : open) {
      if (!known.insert(peer).second) continue;
      asked.push_back(peer);
      names.push_back(noteOf(peer));
    }
    open.clear();
    if (names.empty()) break;
    rendezvous_.awaitAll(names, Seconds{std::max(0.01, (patience - secondsSince(start)).value)});
    for (const int peer : asked) {
      const std::string note = rendezvous_.peek(noteOf(peer));
      if (note.empty() || note == kWrittenOff) silent.insert(peer);
      std::istringstream words(note);
      for (int next = 0; words >> next;) open.push_back(next);
    }
  }
  return {silent.begin(), silent.end()};
}

}  // namespace evenkeel
