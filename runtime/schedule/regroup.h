// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace evenkeel {

/// The ranks of a stage's devices, in their order: replica by replica, shard by shard.
[[nodiscard]] std::vector<int> ranksOf(const Plan& plan, const Stage& stage);

/// A stage, and its ranks, as its neighbour exchanges micro-batches of a pipeline with it.
struct StageSide {
  const Stage& stage;
  std::vector<int> ranks;  // ranksOf()
  int microBatch = 1;      // samples of a full one
};

/// One message: samples [first, first + count) of the replica's own part of the micro-batch, to or from another rank.
struct Portion {
  int peer = 0;  // rank
  int first = 0, count = 0;
  bool operator==(const Portion&) const = default;
};

/// What shard `shard` of replica `replica` of `from` sends of a micro-batch of `samples` to the ranks of `to`, which may have
/// other tp and dp: every rank gets all of its samples, from shard (its own shard modulo from.tp) of the replicas that have them.
/// So core/cost counts them too. At most one message a pair of ranks; none is empty.
[[nodiscard]] std::vector<Portion> portionsToSend(const StageSide& from, const StageSide& to, int samples, int replica,
                                                  int shard);
/// What shard `shard` of replica `replica` of `to` receives; the other ends of portionsToSend().
[[nodiscard]] std::vector<Portion> portionsToReceive(const StageSide& from, const StageSide& to, int samples, int replica,
                                                     int shard);

}  // namespace evenkeel
