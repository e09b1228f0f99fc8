// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <vector>

#include "core/cost/cost_model.h"

namespace evenkeel {

struct SyncTime {
  Seconds sync;       // until the slowest device has all its gradients summed (and, with ZeRO, its weights gathered)
  Seconds optimizer;  // of the slowest device
};

/// Gradient sync behind the last backward, without overlap, in the training's mode:
/// - block: one ring per set of holders (algorithms.md 6). Units between two cuts of any pipeline share their holders; a device's
///   rings run one after the other, rings of unlike devices at once.
/// - tensor: the same rings, but one collective per tensor, so its latency counts as often.
/// - device: one ring per connected set of stages, over the union of their parameters.
/// The ring goes by device id and is as fast as its slowest link; a NIC that is one for its node is shared by the rings that
/// leave it. Where every device has its own NIC and all nodes hold as many members, the faster of that and of the hierarchical
/// way counts, as NCCL does it: inside the nodes, then parts between them through all NICs at once. The shape must be valid.
/// O(pipelines x cuts).
[[nodiscard]] SyncTime syncTime(const CostModel& model, std::span<const Pipeline> pipelines);

/// One collective of a device.
struct SyncPart {
  int members = 0;
  std::int64_t parameters = 0;  // of the device's slices
  Bytes bytes;                  // that the device sends
  Seconds time;
  DeviceId from, to;   // the slowest link of the ring
  double sharing = 1;  // rings that leave its NIC at once
  bool isHierarchical = false;
};
/// What makes up SyncTime::sync: the collectives of the device that is done last. Empty where nothing is synced.
[[nodiscard]] std::vector<SyncPart> slowestSync(const CostModel& model, std::span<const Pipeline> pipelines);

/// Parameters in the gradient buffer of each [pipeline][stage] under device-wise sync: the union of its connected set.
[[nodiscard]] std::vector<std::vector<std::int64_t>> paddedParameters(const CostModel& model,
                                                                      std::span<const Pipeline> pipelines);

}  // namespace evenkeel
