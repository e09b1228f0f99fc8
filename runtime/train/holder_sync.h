// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "core/plan/block_map.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/ring.h"

namespace evenkeel {

/// What the sync of one iteration costs one rank.
struct SyncCost {
  std::int64_t calls = 0;  // collectives
  std::int64_t bytes = 0;  // that it sends: of an all-reduce over n ranks 2 (n - 1) / n of its size
  std::int64_t held = 0;   // memory besides the flat buffers
  bool operator==(const SyncCost&) const = default;
};

/// Sums the gradients of one rank with those of the other holders, and, with ZeRO, shares the update among them. The three modes
/// of the plan differ in the grouping only:
///   block   one collective a holder set: its blocks are neighbours in the flat buffer;
///   tensor  one collective a block, all in flight at once;
///   device  one collective a connected set of ranks, over the union of their parameters: zeros where a rank holds none.
class HolderSync {
 public:
  /// ZeRO 0 or 1; device-wise without ZeRO only. `comm` outlives this.
  HolderSync(const BlockMap& map, const Training& training, Comm& comm);

  /// Connects the sets of ranks; all ranks call it.
  [[nodiscard]] Result<void> connect();

  /// Which elements of the flat buffers this rank updates: all, or its parts with ZeRO. In order.
  [[nodiscard]] std::vector<FlatRange> updated() const;
  [[nodiscard]] bool isSharded() const { return isSharded_; }

  /// The parts of the flat buffer that one collective each sums. Those that may be started in any order, while others are not
  /// final yet, can be overlapped with backward: one a holder set, no ZeRO, nothing padded. Else empty.
  [[nodiscard]] std::vector<FlatRange> overlappable() const;
  /// Starts the collective of overlappable()[index].
  void start(std::size_t index, const at::Tensor& flat);
  /// Starts what was not started yet. With ZeRO, or padded, there is nothing to start: finish() does it all.
  void startRest(const at::Tensor& flat);
  /// In place: the sums, at least in updated().
  [[nodiscard]] Result<void> finish(const at::Tensor& flat);
  /// With ZeRO: brings the updated values of the other holders here.
  [[nodiscard]] Result<void> gatherValues(const at::Tensor& flat);

  [[nodiscard]] const SyncCost& cost() const { return cost_; }

 private:
  struct Group {
    std::vector<int> ranks;
    std::int64_t offset = 0, elements = 0;  // in the flat buffer, or in padded_
    std::unique_ptr<Transfer> sum;          // started, not awaited yet
  };
  /// Where a block of the union of a connected set lies here.
  struct PaddedBlock {
    std::int64_t flatOffset = 0, paddedOffset = 0, elements = 0;
  };
  void groupByHolders(const BlockMap& map, bool eachBlock);
  void groupByDevices(const BlockMap& map);
  [[nodiscard]] FlatRange ownPart(const Group& group) const;

  Comm& comm_;
  bool isSharded_ = false, isOnePerSet_ = false;
  std::int64_t elements_ = 0;
  std::vector<Group> groups_;
  at::Tensor padded_;  // device-wise only
  std::vector<PaddedBlock> paddedBlocks_;
  SyncCost cost_;
};

}  // namespace evenkeel
