// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <vector>

#include "core/cost/cost_model.h"

namespace evenkeel {

/// Bytes per parameter of gradient and optimizer state. Mixed precision: 2 (weights) + 4 (fp32 gradients) + 12 (fp32 master copy
/// and two moments); fp32: 4 + 4 + 8.
[[nodiscard]] std::int64_t gradientBytesPerParameter();
[[nodiscard]] std::int64_t optimizerBytesPerParameter(Precision precision);

/// What the memory of one device depends on.
struct DeviceMemory {
  int kind = 0;                         // as of CostModel
  std::int64_t parameters = 0;          // stored
  std::int64_t shardedParameters = 0;   // its part of them where ZeRO shards: the sum over units of parameters / holders
  std::int64_t apartParameters = 0;     // held twice: their parts lie apart in the flat buffers, and ops need them in one piece
  std::int64_t paddedParameters = 0;    // of the buffer that device-wise sync sums, beside the gradients; 0 otherwise
  std::int64_t wholeParameters = 0;     // of which ZeRO-2 does not share the gradients
  std::int64_t unitParameters = 0;      // of the largest unit: what ZeRO-2 exchanges at once
  Bytes saved;                          // activations of one micro-batch after recomputation
  int inFlight = 1;                     // micro-batches whose activations are held at once
  Bytes transient;                      // largest workspace of a unit
  Bytes boundary;                       // residual tensor of a micro-batch; 0 where the pipeline has one stage
};
[[nodiscard]] MemoryUse memoryUse(const CostModel& model, const DeviceMemory& device);

/// Micro-batches that stage i (0-based) of P holds at once under 1F1B: min(P - i, M). The local batch enters nowhere else.
[[nodiscard]] int inFlightMicroBatches(std::size_t stage, std::size_t stageCount, std::int64_t microBatches);

/// Memory of every replica's devices (all ranks of a tp group are alike) of every stage: [pipeline][stage][replica].
/// The shape must be valid. O(devices + pipelines x units).
using MemoryByReplica = std::vector<std::vector<std::vector<MemoryUse>>>;
[[nodiscard]] MemoryByReplica memoryOf(const CostModel& model, std::span<const Pipeline> pipelines);

/// How much a device lacks; 0 if it fits.
[[nodiscard]] Bytes lackOf(const MemoryUse& use);
/// The replica that lacks most, else has least left; the first of equal ones.
[[nodiscard]] std::size_t fullestReplica(const std::vector<MemoryUse>& replicas);

}  // namespace evenkeel
