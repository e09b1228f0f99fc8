// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/comm/comm.h"
#include "runtime/data/samples.h"
#include "runtime/device/compute_device.h"
#include "runtime/job/events.h"
#include "runtime/job/job.h"

namespace evenkeel {

/// Trains one rank's share of the job from step 1, or the one after the checkpoint that it resumes, to its last; reports every
/// step. `lastStep` is the number of finished steps, also after a failure. Fails when a peer fails (Unreachable), when the data
/// can no longer be read, or when loss or gradient are not finite. `validation`: what the run evaluates on; needed if it does.
/// `device`: what this rank computes on; `comm` takes tensors that lie there, and on the host.
[[nodiscard]] Result<void> train(const Job& job, Comm& comm, const TokenSamples& samples, EventWriter& events,
                                 std::atomic<std::int64_t>& lastStep, const TokenSamples* validation = nullptr,
                                 const ComputeDevice& device = {});

}  // namespace evenkeel
