// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/cost/sync.h"
#include "core/cost/sync_blocks.h"

namespace evenkeel {

/// How long the rings of a plan take, those that share a way at once. Refers to its arguments, which must outlive it.
class SyncRings {
 public:
  SyncRings(const CostModel& model, std::span<const Pipeline> pipelines, std::span<const SyncBlock> blocks);

  /// Slices that a block is summed in: each tp rank of a holder has the same number of them.
  [[nodiscard]] int slices(const SyncBlock& block) const;
  /// One slice of the block. All slices take as long: a tp group is inside a node, so its ranks have the same links. No time where it
  /// has one holder.
  [[nodiscard]] SyncPart slice(const SyncBlock& block, int slices) const;

 private:
  struct Ring {
    Seconds perByte, latency;  // for a byte that every member sends, and of a step
    DeviceId from, to;         // its slowest link
    double sharing = 1;
  };
  void countFlows();
  void countHops(std::span<const SyncBlock> blocks);
  [[nodiscard]] std::vector<DeviceId> membersOf(const SyncBlock& block) const;
  [[nodiscard]] Ring ringOf(std::span<const DeviceId> members, Bytes message, std::size_t lanes = 1) const;
  [[nodiscard]] std::size_t membersOfEachNode(const std::vector<DeviceId>& members) const;
  [[nodiscard]] Seconds hierarchicalTime(const std::vector<DeviceId>& members, std::size_t perNode, double bytes,
                                         double collectives) const;
  [[nodiscard]] double sharingOf(int node) const;

  const CostModel& model_;
  std::span<const Pipeline> pipelines_;
  std::vector<int> flows_;  // rings that leave each node at once
  std::vector<int> hops_;   // steps of rings that cross each switch at once
};

}  // namespace evenkeel
