// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string_view>

#include "core/cluster/device_type.h"

namespace evenkeel {

/// What a stage does while its activations and gradients travel.
enum class Transfers {
  Overlapped,  // beside compute, one after the other through the stage's link: our runtime
  Deferred,    // in the stream of the compute, and an activation leaves only when the gradient that is due has come: DeepSpeed
  Paired,      // in the stream of the compute, a send together with the receive that follows it: Megatron-LM
};

/// What a runtime makes of one device type beyond the profile. Zero everywhere: as profiled.
struct DeviceTraits {
  double slowdown = 0;             // a run's compute is this much slower than its profile
  double productSlowdown = 0;      // added to matrix products: seconds per (FLOP / dense peak), clocks under lasting load
  double runAhead = 1;             // of ops that wait for their launches, what remains in a run, where the host launches ahead
  std::optional<Bytes> outside{};  // instead of what the profile reserves: context, communicators, the allocator's slack
};

/// How a runtime executes a plan, as far as time and memory depend on it. The default is Evenkeel's own runtime.
struct RuntimeTraits {
  std::string_view name = "evenkeel";
  Transfers transfers = Transfers::Overlapped;
  bool syncsBesideBackward = true;  // block- and tensor-wise without ZeRO: the sum of some units' gradients, while others' are not final yet
  Bytes sendBuffer{};               // a message up to this size leaves from a buffer: its sender goes on at once
  bool scattersBoundary = false;    // each rank of a tp group sends its part of the residual tensor; the receivers gather
  Seconds perMicroBatch;            // of a stage with neighbours, forward and backward together; not in any profile
  Seconds perTransfer;              // set-up of a send
  double allocatorSlack = 0;        // of activations and workspace: cached blocks that fit nothing
  int gradientCopies = 0;           // flattened copies of the gradients beside them
  bool holdsFlatBuffers = true;     // weights lie in the order of their holders: what others cut elsewhere is held in one piece too
  DeviceTraits (*device)(const DeviceType&) = [](const DeviceType&) { return DeviceTraits{}; };
};

/// "evenkeel", "deepspeed" (Megatron-DeepSpeed's pipeline engine) or "megatron" (Megatron-LM 1F1B, as Aceso's runtime has it).
/// Constants of the latter two are fitted to the measured runs of the Sailor artifact, one set per device type:
/// resources/docs/accuracy.md.
[[nodiscard]] const RuntimeTraits& evenkeelRuntime();
[[nodiscard]] const RuntimeTraits& deepSpeedRuntime();
[[nodiscard]] const RuntimeTraits& megatronRuntime();

}  // namespace evenkeel
