// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "runtime/comm/rendezvous.h"

namespace evenkeel {

/// Notes that ranks leave in the store about the peers that they have waited long for, or given up. When one rank dies, all end
/// one after the other, each seeing only its neighbour go. Those who leave a note are victims: the one without is to blame.
class PeerNotes {
 public:
  /// `rendezvous` is used by this object only: a wait in it keeps other threads out.
  PeerNotes(Rendezvous rendezvous, int rank) : rendezvous_(std::move(rendezvous)), rank_(rank) {}

  void waitingFor(const std::vector<int>& peers);
  void noLongerWaiting();
  /// Notes in the name of a rank that does not answer that it is the one to blame, so that others need not wait for it as well.
  void writeOff(int rank);

  /// Of the ranks that `peers` wait for, directly or through others, those that have left no note within `patience`, or were
  /// written off; sorted.
  /// This rank is none of them. Empty: everybody waits for somebody else.
  [[nodiscard]] std::vector<int> withoutNote(const std::vector<int>& peers, Seconds patience);

 private:
  Rendezvous rendezvous_;
  int rank_;
};

}  // namespace evenkeel
