// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>

#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/comm/comm.h"
#include "runtime/nn/parameters.h"

namespace evenkeel {

/// Of its messages, which take the host's memory also between cards; no message of the pipelines has it.
inline constexpr int kStateTag = 17;

/// Whole tensors between rank 0 and the slices that the ranks hold, under any plan. The ranks need no common disk for it: rank 0 alone
/// reads and writes checkpoints.
class StateExchange {
 public:
  /// All three must outlive it.
  StateExchange(const BlockMap& map, Parameters& parameters, Comm& comm) : map_(map), parameters_(parameters), comm_(comm) {}

  /// Rank 0 learns who holds what. All ranks call it once.
  Result<void> connect();

  /// All ranks call it between two steps. On rank 0 `take` gets every tensor row by row, for each state in turn, in the map's order: one
  /// tensor is in memory at a time.
  Result<void> gather(const std::function<void(std::vector<float>)>& take);

  /// The way back: on rank 0 `give` reads a tensor, every holder of a part gets it.
  Result<void> scatter(const std::function<Result<std::vector<float>>(ModelState, const TensorSpec&)>& give);

 private:
  struct Holding {
    int rank = 0;
    std::int64_t first = 0, count = 0;  // elements, the split dimension outside
    bool isFirstHolder = false;
  };

  const BlockMap& map_;
  Parameters& parameters_;
  Comm& comm_;
  // On rank 0: who holds what of a tensor, by state and tensor; by rank, then place.
  std::vector<std::vector<std::vector<Holding>>> holdings_;
};

}  // namespace evenkeel
