// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/plan/plan.h"

namespace evenkeel {

/// A small model with something of everything: padded vocabulary, grouped heads in some, tied or untied.
[[nodiscard]] Model randomModel(std::uint64_t seed);

/// A plan of random shape that trains `globalBatch` samples of `model` on at most 12 cpu devices: 1 to 3 pipelines, 1 to 4
/// stages, tp 1 to 4, dp 1 to 3 with unlike shares, any cuts, any recomputation, ragged micro-batches. Its shape is valid.
[[nodiscard]] Plan randomPlan(std::uint64_t seed, const Model& model, std::int64_t globalBatch);

/// The same training on one device, in one micro-batch.
[[nodiscard]] Plan planOfOneDevice(const Plan& plan);

}  // namespace evenkeel
