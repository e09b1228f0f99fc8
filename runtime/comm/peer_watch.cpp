// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/comm/peer_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>

#include "core/base/words.h"

namespace evenkeel {
namespace {

constexpr Seconds kPatience{1};  // for the notes of peers that are ending too
constexpr Seconds kGrace{5};     // for what has a deadline of its own to keep it

}  // namespace

bool saysTimeout(const std::string& failure) {
  const std::string text = lowerCase(failure);
  return text.find("timed out") != std::string::npos || text.find("timeout") != std::string::npos;
}

PeerWatch::PeerWatch(PeerNotes notes, Options options)
    : notes_(std::move(notes)),
      options_(std::move(options)),
      watch_({.longAfter = options_.peerTimeout * 0.5,
              .stuckAfter = options_.peerTimeout * 2.0 + kGrace,
              .onLong = [this](const std::vector<int>& peers) { notes_.waitingFor(peers); },
              .onLongOver = [this] { notes_.noLongerWaiting(); },
              .onStuck =
                  [this](const std::vector<int>& peers) {
                    options_.onStuck(unreachable(
                        namesOf(peers), fmt::format("{} waits although its deadline has long passed", nameOf(options_.rank))));
                  }}) {}

Result<void> PeerWatch::waitFor(const std::vector<int>& peers, const char* doing, const std::function<void()>& operation) {
  watch_.begin(peers);
  try {
    operation();
  } catch (const std::exception& failure) {
    watch_.giveUp();
    return blame(peers, doing, failure.what());
  }
  watch_.end();
  return {};
}

std::string PeerWatch::namesOf(const std::vector<int>& ranks) const {
  std::vector<std::string> names;
  for (const int rank : ranks) {
    if (rank != options_.rank) names.push_back(nameOf(rank));
  }
  constexpr std::size_t kShown = 4;
  const std::size_t more = names.size() > kShown ? names.size() - kShown : 0;
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

/// Who is to blame for the failure of an operation that needed `peers`: whoever, in the chain of those who wait for each other,
/// waits for nobody; if connections were closed, only those whose is.
Error PeerWatch::blame(const std::vector<int>& peers, const char* doing, const std::string& failure) {
  // The store of the notes may hang like any other process.
  const auto giveUp = [&](const std::vector<int>& ranks) { options_.onStuck(unreachable(namesOf(ranks), failure)); };
  WaitWatch limit({.longAfter = kGrace, .stuckAfter = kGrace * 2.0, .onLong = giveUp, .onLongOver = [] {}, .onStuck = giveUp});
  limit.begin(peers);
  notes_.waitingFor(peers);
  std::vector<int> culprits = notes_.withoutNote(peers, kPatience);
  const bool isSilence = saysTimeout(failure);
  if (!isSilence && isClosed_) {
    const auto start = SteadyClock::now();
    std::vector<int> closed;
    for (const int rank : culprits) {
      if (secondsSince(start) < kPatience && isClosed_(rank)) closed.push_back(rank);
    }
    if (!closed.empty()) culprits = closed;
  }
  if (culprits.size() == 1) notes_.writeOff(culprits.front());
  if (culprits.empty()) culprits = peers;
  const std::string what =
      isSilence ? fmt::format("did not answer within {:g} s", options_.peerTimeout.value) : "ended or closed its connections";
  const std::string detail = failure.substr(0, failure.find('\n'));
  return unreachable(namesOf(culprits),
                     fmt::format("{}; noticed by {} while {} ({})", what, nameOf(options_.rank), doing, detail));
}

}  // namespace evenkeel
