// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "core/base/units.h"
#include "core/model/model.h"
#include "core/model/training.h"

namespace evenkeel {

/// What one op does on one device of a tp group, counted from the shapes; no device enters.
struct OpWork {
  Flops forward, backward;                // of the matrix products; element-wise work is bound by traffic
  Bytes forwardTraffic;                   // read and written by a forward that passes over its tensors once: DeviceClass::passes
  std::int64_t parameters = 0;            // stored on this device
  Bytes saved, input, transient;          // as in OpCost
  Bytes dropoutSaved;                     // the part of `saved` that is there only where dropout runs: masks, dropped copies
  Bytes forwardReduced, backwardReduced;  // all-reduced over the tp group behind the pass; 0 at tp 1
  bool runs = true;                       // false: nothing is executed without dropout
};

/// Saved bytes after Korthikanti et al. 2022 (arXiv 2205.05198): at 2-byte numbers and tp 1 those of a GPT layer sum to
/// s b h (34 + 5 a s / h), dropout masks (1 byte) included. The fused attention kernel keeps nothing of size s^2.
/// With sequence parallelism s b h (34 / t + 5 a s / (h t)); its all-gathers and reduce-scatters move what the all-reduces moved, so they
/// stand in the same fields (the gather that the weight gradient needs again overlaps and is left out).
/// tp and samples at least 1. O(1), cannot fail.
[[nodiscard]] OpWork opWork(const Model& model, const Training& training, Op op, int tp, std::int64_t samples);

/// Model FLOPs of one sample: forward and backward, no recomputation (what MFU is defined over).
[[nodiscard]] Flops flopsPerSample(const Model& model, const Training& training);

}  // namespace evenkeel
