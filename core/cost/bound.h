// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>

#include "core/cost/cost_model.h"

namespace evenkeel {

/// No valid plan of the problem is reported faster.
/// Every sample of the batch must pass every op once, forward and backward, on some device. Give op o the weight that a reference
/// kind r needs for it at its best, w_o = c_r(o). In a second a device of kind k works off at most max_o w_o / c_k(o) of it, so
///     T >= batch x sum_o w_o / sum_devices max_o w_o / c_k(o);     the best r is taken.
/// c_k(o) is the least device time of a sample over all tp that a node can hold and over a grid of samples that includes the
/// whole batch: exact where the time per sample falls with the samples, as it does in the analytic profile.
[[nodiscard]] Seconds problemLowerBound(const CostModel& model);
/// The same of plans that use only these devices.
[[nodiscard]] Seconds problemLowerBound(const CostModel& model, std::span<const DeviceId> devices);

}  // namespace evenkeel
