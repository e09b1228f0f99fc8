// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/run.h"
#include "runtime/comm/comm.h"
#include "runtime/device/compute_device.h"

namespace evenkeel {

/// Ranks that are threads of this process: what workers do, without the time that it takes to start them. Like Gloo, a send is
/// done only once its receive is posted, messages of a pair and tag keep their order, sums are taken in the order of the ranks.
/// Like NCCL's, lines must have been opened, by both ends, before they are used, once a rank has opened any. One rank computes at a time. A wait of more than 20 s is an error.
class ThreadWorld {
 public:
  explicit ThreadWorld(int ranks);
  ~ThreadWorld();
  /// Call it in the thread of that rank; returns once it is its turn.
  [[nodiscard]] std::unique_ptr<Comm> comm(int rank);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

/// What every rank has reported of every step.
struct WorldOutcome {
  std::vector<std::string> errors;         // by rank; empty: it has finished
  std::vector<std::vector<Json>> stepsOf;  // by rank
  std::vector<std::string> warnings;       // of all ranks
  std::vector<std::string> checkpoints;    // folders, in the order in which they were done
  std::vector<Json> evaluations;
  [[nodiscard]] std::vector<double> ofSteps(int rank, const std::string& field) const;
};

/// How the ranks of a test differ from those on CPU cores.
struct RankKinds {
  std::function<ComputeDevice(int rank)> device = [](int) { return ComputeDevice{}; };
  /// What rank `rank` is given in place of its comm.
  std::function<std::unique_ptr<Comm>(int rank, std::unique_ptr<Comm> comm)> wrap = [](int, std::unique_ptr<Comm> comm) { return comm; };
};

/// Trains `plan` on `text`, each rank in a thread of its own, from the beginning or from a checkpoint. Evaluates on `validation`.
[[nodiscard]] WorldOutcome trainInThreads(const Plan& plan, const Run& run, const std::string& text,
                                          const std::string& resume = {}, const std::string& validation = {},
                                          const RankKinds& kinds = {});

}  // namespace evenkeel
