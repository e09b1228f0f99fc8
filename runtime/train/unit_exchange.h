// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/plan/block_map.h"
#include "runtime/comm/comm.h"
#include "runtime/nn/parameters.h"
#include "runtime/train/holder_sync.h"

namespace evenkeel {

/// ZeRO-2: sums the gradients of each unit over all holders while the backward of every micro-batch goes on, so that a rank holds the
/// sums of the parts that it updates, and nothing of other parts for longer than the backward of one unit lasts.
///
/// The micro-batches of all pipelines meet in rounds, as many as the pipeline with most micro-batches has; micro-batch m of M is of
/// round ceil((m + 1) R / M) - 1. In its round a rank sends every other holder of a unit what that one updates, and adds what it gets
/// in the order of the ranks: the same bits in every run. Ranks whose pipeline has no micro-batch in a round only take. All meet in the
/// order (round, units from the last to the first), in which backward comes to them in any pipeline, so that nobody waits for somebody
/// who waits for him; but pipelines that are cut differently do wait for each other at every micro-batch.
class UnitExchange {
 public:
  /// All must outlive it. `parameters` were made with sync.ownership().
  UnitExchange(const Plan& plan, const HolderSync& sync, const Parameters& parameters, Comm& comm);

  /// What its messages take.
  [[nodiscard]] std::vector<Line> lines() const;

  // Called in this order in every iteration; between two beginBackward() once unitDone() for each unit of the stage, last one first, if
  // this replica has samples of the micro-batch. They throw CommFailure.
  void beginStep() { nextRound_ = 0; }
  /// Takes what others have computed in rounds before that of this micro-batch, and in this one too if this rank has no sample of it.
  /// Call it before the micro-batch's gradient is waited for: those who send that one may wait for us in these rounds.
  void beginBackward(int microBatch);
  /// The gradients of a unit are in the bucket: sends them to their owners, takes those of the others, empties the bucket.
  void unitDone(int unit);
  /// Takes what is left.
  void endStep();

  [[nodiscard]] int rounds() const { return rounds_; }
  /// Of one iteration: messages, bytes sent, and most memory beside the sums.
  [[nodiscard]] const SyncCost& cost() const { return cost_; }
  /// Time in the calls above, waiting included, since the last call of it.
  [[nodiscard]] Seconds takeTime();

 private:
  /// A part of a slice of which all holders' gradients are summed by one of them.
  struct Piece {
    at::Tensor bucket, sum;  // sum: where this rank is the owner
  };
  /// What one other rank and this one have to do with each other in a unit.
  struct Peer {
    int rank = 0;
    std::vector<std::size_t> toIt, fromIt;  // indices of pieces in the order of the block map; fromIt also of this rank itself
    std::int64_t elementsToIt = 0, elementsFromIt = 0;
  };
  struct Unit {
    std::vector<Piece> pieces;
    std::vector<Peer> peers;  // by rank, this one among them
  };

  [[nodiscard]] Unit unitOf(const std::vector<std::size_t>& tensors, const HolderSync& sync, const std::vector<RankPlace>& places) const;
  [[nodiscard]] bool computes(int rank, int round) const;
  void countCost();
  void receiveRound(int round);
  void exchange(const Unit& unit, int round);

  const Parameters& parameters_;
  Comm& comm_;
  int firstUnit_ = 0, microBatches_ = 0, rounds_ = 0, nextRound_ = 0;
  std::vector<std::vector<bool>> computes_;  // by rank, round: has samples of a micro-batch of it
  std::vector<Unit> units_;
  SyncCost cost_;
  Seconds time_;
};

/// The round in which micro-batch m of `microBatches` meets those of other pipelines.
[[nodiscard]] int roundOf(std::int64_t microBatch, std::int64_t microBatches, std::int64_t rounds);

}  // namespace evenkeel
