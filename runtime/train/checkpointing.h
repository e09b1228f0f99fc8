// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>

#include "runtime/checkpoint/state_exchange.h"
#include "runtime/job/events.h"
#include "runtime/job/job.h"

namespace evenkeel {

/// When a run writes checkpoints, and how it goes on from one. Rank 0 reads and writes; the disk is written while training goes on. A
/// checkpoint that cannot be written is a warning: the run and the checkpoints before it are worth more.
class Checkpointing {
 public:
  /// All but `dataSha256` must outlive it.
  Checkpointing(const Job& job, const BlockMap& map, Parameters& parameters, Comm& comm, EventWriter& events);

  /// All ranks: agrees on who holds what, if anything is to be saved or resumed, and takes over the state that the job resumes
  /// from. Returns the number of steps that are done; after a resume the holders' values must be gathered. `lossScale` becomes
  /// the saved one if there is any. All ranks must have been joined in one set.
  [[nodiscard]] Result<std::int64_t> begin(LossScale& lossScale);

  /// All ranks, after each finished step.
  [[nodiscard]] Result<void> afterStep(std::int64_t finished, const LossScale& lossScale);

  /// All ranks, at the end: the last checkpoint is on the disk then.
  [[nodiscard]] Result<void> finish();

 private:
  [[nodiscard]] bool isRoot() const { return comm_.rank() == 0; }
  [[nodiscard]] CheckpointFacts factsAt(std::int64_t step, const LossScale& lossScale) const;
  Result<std::int64_t> resume(LossScale& lossScale);
  [[nodiscard]] std::filesystem::path directory() const;
  /// Whether checkpoints can be written there, and would not mix with those of a run that this one does not continue.
  [[nodiscard]] Result<void> checkDirectory() const;
  void warnOfDifferences(const CheckpointFacts& saved);
  void tell(const Result<std::filesystem::path>& written);

  const Job& job_;
  const BlockMap& map_;
  Comm& comm_;
  EventWriter& events_;
  StateExchange exchange_;
  std::optional<CheckpointWriter> writer_;  // of rank 0, while one is being written
  std::int64_t writing_ = 0;                // its step
};

}  // namespace evenkeel
