// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/runtime_traits.h"

namespace evenkeel {
namespace {

constexpr Bytes megabytes(std::int64_t count) { return {count * 1'000'000}; }

bool isServerGpu(const DeviceType& type) { return type.vendor == "NVIDIA" && type.nicPerDevice; }

/// Fitted to the measured runs of the Sailor artifact (bench_accuracy prints what they reach). Data-centre cards: GH200. Others:
/// Titan RTX, RTX 2080 and RTX 3090.
DeviceTraits deepSpeedDevice(const DeviceType& type) {
  if (isServerGpu(type)) return {.slowdown = 0, .productSlowdown = 0.42, .runAhead = 0.88, .outside = megabytes(4700)};
  return {.slowdown = 0.03, .productSlowdown = 0, .runAhead = 1, .outside = megabytes(650)};
}

DeviceTraits megatronDevice(const DeviceType& type) {
  if (isServerGpu(type)) return {.slowdown = 0.03, .productSlowdown = 0.35, .runAhead = 1, .outside = megabytes(4100)};
  return {.slowdown = 0.03, .productSlowdown = 0, .runAhead = 1, .outside = megabytes(700)};
}

}  // namespace

const RuntimeTraits& evenkeelRuntime() {
  static const RuntimeTraits traits;
  return traits;
}

const RuntimeTraits& deepSpeedRuntime() {
  static const RuntimeTraits traits = {.name = "deepspeed",
                                       .transfers = Transfers::Deferred,
                                       .syncsBesideBackward = false,
                                       .sendBuffer = {4 << 20},  // NCCL_BUFFSIZE, its default
                                       .scattersBoundary = true,
                                       .perMicroBatch = fromMilliseconds(2.5),
                                       .perTransfer = {},
                                       .allocatorSlack = 0.04,
                                       .gradientCopies = 1,
                                       .holdsFlatBuffers = false,
                                       .device = deepSpeedDevice};
  return traits;
}

const RuntimeTraits& megatronRuntime() {
  static const RuntimeTraits traits = {.name = "megatron",
                                       .transfers = Transfers::Paired,
                                       .syncsBesideBackward = false,
                                       .sendBuffer = {},
                                       .scattersBoundary = false,
                                       .perMicroBatch = fromMilliseconds(0.5),
                                       .perTransfer = fromMilliseconds(0.5),
                                       .allocatorSlack = 0.03,
                                       .gradientCopies = 0,
                                       .holdsFlatBuffers = false,
                                       .device = megatronDevice};
  return traits;
}

}  // namespace evenkeel
