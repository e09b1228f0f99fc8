// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/comm/peer_notes.h"
#include "runtime/comm/wait_watch.h"

namespace evenkeel {

/// How a rank waits for others, whatever it is that carries the messages: with deadlines, and with names for errors. Those name the
/// rank that failed first as far as the notes of the others tell it (a heuristic), not merely the neighbour that was seen to go.
class PeerWatch {
 public:
  struct Options {
    int rank = 0;
    Seconds peerTimeout{60};
    std::vector<std::string> rankNames;  // "rank 2 (cpu-0/2)", by rank: how errors call them
    /// Called, from another thread, when a wait has lasted far longer than its own deadline. Should end the process.
    std::function<void(const Error&)> onStuck;
  };
  PeerWatch(PeerNotes notes, Options options);

  /// Whether the connection to a peer is closed: it has ended, or it has given us up. Asked after a failure only.
  void askOfClosed(std::function<bool(int peer)> isClosed) { isClosed_ = std::move(isClosed); }

  [[nodiscard]] Seconds peerTimeout() const { return options_.peerTimeout; }

  /// Runs an operation that waits for `peers`; `doing`: a word for errors. What it throws becomes an Error that names who is to blame. One
  /// that waits longer than peerTimeout() should throw a text with "timed out".
  [[nodiscard]] Result<void> waitFor(const std::vector<int>& peers, const char* doing, const std::function<void()>& operation);

 private:
  [[nodiscard]] Error blame(const std::vector<int>& peers, const char* doing, const std::string& failure);
  [[nodiscard]] std::string nameOf(int rank) const { return options_.rankNames[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::string namesOf(const std::vector<int>& ranks) const;

  PeerNotes notes_;
  Options options_;
  std::function<bool(int)> isClosed_;
  WaitWatch watch_;  // last: its thread ends before what it uses
};

/// Whether a text of a library says that a deadline has passed.
[[nodiscard]] bool saysTimeout(const std::string& failure);

}  // namespace evenkeel
