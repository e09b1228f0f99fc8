// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/comm/comm.h"
#include "runtime/job/events.h"
#include "runtime/job/job.h"

namespace evenkeel {

/// Plays one rank of a plan on a virtual device: the schedule, the waits and the messages of training, each message a number with its
/// time of departure; what would be computed or in flight is slept, as long as the plan predicts (times Run::Rehearsal::timeScale). All
/// ranks must be on one machine, whose clock they share. Steps are reported as in training, with loss and norm 0. Fails where a peer
/// fails (Unreachable) or a stage has no prediction.
[[nodiscard]] Result<void> rehearse(const Job& job, Comm& comm, EventWriter& events, std::atomic<std::int64_t>& lastStep);

}  // namespace evenkeel
