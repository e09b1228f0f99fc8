// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "core/plan/block_map.h"
#include "runtime/comm/comm.h"
#include "runtime/nn/parameters.h"

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
/// With ZeRO-2 a holder set is divided unit by unit, and UnitExchange sums what is shared; the rest is summed here.
class HolderSync {
 public:
  /// Device-wise without ZeRO only. `comm` outlives this.
  HolderSync(const BlockMap& map, const Plan& plan, Comm& comm, at::Device place = at::kCPU);

  /// What its rings take.
  [[nodiscard]] std::vector<Line> lines() const;
  /// Connects the sets of ranks; all ranks call it.
  [[nodiscard]] Result<void> connect();

  /// Which elements of the flat buffers this rank updates: all, or its parts with ZeRO.
  [[nodiscard]] Ownership ownership() const;
  [[nodiscard]] bool isSharded() const { return zeroStage_ > 0; }

  /// Ranks that hold the same range of the flat buffer (of each its own), in which each of them in order has its partOf().
  struct Group {
    std::vector<int> ranks;
    FlatRange range;         // in the flat buffer, or in the padded one
    bool isShared = false;   // UnitExchange sums its gradients
    std::unique_ptr<Transfer> sum = {};  // started, not awaited yet
  };
  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }

  /// The parts of the flat buffer that one collective each sums. Those that may be started while others are not final yet can be
  /// overlapped with backward, tensors of later units first: the ranks of a set start its collectives in one order. Empty with
  /// ZeRO, and where something is padded.
  [[nodiscard]] std::vector<FlatRange> overlappable() const;
  /// Starts the collective of overlappable()[index].
  void start(std::size_t index, const Parameters& parameters);
  /// Starts what was not started yet, once all gradients of this rank are final. With ZeRO it does it all: its rings have steps that
  /// need every member, each as soon as it has nothing else to do.
  [[nodiscard]] Result<void> startRest(const Parameters& parameters);
  /// In place: the sums, at least of what this rank updates.
  [[nodiscard]] Result<void> finish(const Parameters& parameters);
  /// With ZeRO: brings the updated values of the other holders here.
  [[nodiscard]] Result<void> gatherValues(const at::Tensor& flat);

  [[nodiscard]] const SyncCost& cost() const { return cost_; }

 private:
  /// Where a block of the union of a connected set lies here.
  struct PaddedBlock {
    FlatRange flat;
    std::int64_t paddedOffset = 0;
  };
  void findShared(const BlockMap& map, const Plan& plan);
  void groupByHolders(const BlockMap& map, bool eachBlock);
  void groupByDevices(const BlockMap& map, at::Device place);
  void countCost(Precision precision);
  [[nodiscard]] FlatRange ownPart(const Group& group) const;

  Comm& comm_;
  int zeroStage_;
  std::int64_t elements_ = 0;
  std::vector<Group> groups_;
  std::vector<std::vector<std::size_t>> sharedUnits_;  // of this rank's stage
  std::vector<int> sharedUnitOf_;                      // by tensor: the first unit that has it, -1 if it is not shared
  at::Tensor padded_;                                  // device-wise only
  std::vector<PaddedBlock> paddedBlocks_;
  SyncCost cost_;
};

}  // namespace evenkeel
