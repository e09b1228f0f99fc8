// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

#include "core/base/json.h"

namespace evenkeel {

/// How a job of Slurm stands.
struct QueueState {
  std::string state;   // Slurm's word: "PENDING", "RUNNING", "TIMEOUT", ...; empty: Slurm could not be asked
  std::string reason;  // why it waits, or why Slurm could not be asked; may be empty
  std::string begin;   // when Slurm expects to start it; empty: it does not say
  std::string limit;   // of its time: "1:00:00"; empty: it does not say
  std::string nodes;   // that it has: "c[1-2]"; empty while it has none
  bool operator==(const QueueState&) const = default;
  /// It has ended, well or not, and none of its processes is left.
  [[nodiscard]] bool isOver() const;
};

/// What `squeue -o "%T|%r|%S|%l|%N"` printed about one job.
[[nodiscard]] QueueState parseQueueState(std::string_view line);

/// Asks squeue, and of a job that it has forgotten sacct, for at most 6 s each. A job that neither knows is in state "GONE". `job` is a
/// number as sbatch prints it.
[[nodiscard]] QueueState askQueue(const std::string& job);

[[nodiscard]] Json toJson(const QueueState& state);

}  // namespace evenkeel
