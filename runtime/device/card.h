// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/plan/plan.h"
#include "runtime/job/job.h"

namespace evenkeel {

/// What CUDA must find in the environment of a rank before it is first used.
struct CardVariables {
  std::string visible;  // CUDA_VISIBLE_DEVICES: the one card of this rank
  std::string order;    // CUDA_DEVICE_ORDER
  bool operator==(const CardVariables&) const = default;
};

/// The card of a device of the plan: by its uuid where the plan has one, else by its number in the node, as nvidia-smi counts. What was
/// visible to this process before (a container, Slurm) is counted among itself: device 1 of "4,6" is 6.
[[nodiscard]] Result<CardVariables> cardVariables(const Plan& plan, DeviceId device, const Variables& environment);

/// By rank: whether the plan puts it on a card.
[[nodiscard]] std::vector<bool> ranksOnCards(const Plan& plan);

}  // namespace evenkeel
