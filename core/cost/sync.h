// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "core/cost/cost_model.h"

namespace evenkeel {

/// When each stage is done with its last backward, by pipeline and stage.
using StageEnds = std::vector<std::vector<Seconds>>;

struct SyncTime {
  Seconds sync;       // behind the end of the slowest pipeline, until the slowest device has all its gradients summed
  Seconds busiest;    // what the device with most of it spends in collectives, whether or not compute hides some
  Seconds optimizer;  // of the slowest device
};

/// Gradient sync in the training's mode (with ZeRO its gather of the weights too):
/// - block: one ring per set of holders (algorithms.md 6). Units between two cuts of any pipeline share their holders; a device's
///   rings run one after the other, rings of unlike devices at once.
/// - tensor: the same rings, but one collective per tensor, so its latency counts as often.
/// - device: one ring per connected set of stages, over the union of their parameters.
/// The ring goes by device id and is as fast as its slowest link; a NIC that is one for its node is shared by the rings that
/// leave it, and a switch with a limit in total by all hops of all rings that cross it at once. Where every device has its own
/// NIC and all nodes hold as many members, the faster of that and of the hierarchical way counts, as NCCL does it: inside the
/// nodes, then parts between them through all NICs at once. A ring begins when the gradients of all its holders are final: behind
/// the last backward of their stages, whatever other stages still do. Block- and tensor-wise without ZeRO our runtime begins beside
/// that backward, when it has left the ring's units behind. A device takes its rings in the order in which they are ready; that
/// another device may come to one of them later is left out. The shape must be valid. O(pipelines x cuts).
[[nodiscard]] SyncTime syncTime(const CostModel& model, std::span<const Pipeline> pipelines, const StageEnds& ends);
/// When all stages end at once and nothing overlaps.
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
/// The rings of one device in their order.
struct SyncQueue {
  std::vector<SyncPart> parts;
  Seconds begin, end;  // of the first and of the last one
};
/// Of the device that is done last. No parts where nothing is synced.
[[nodiscard]] SyncQueue slowestSync(const CostModel& model, std::span<const Pipeline> pipelines, const StageEnds& ends);
/// When all stages end at once and nothing overlaps.
[[nodiscard]] SyncQueue slowestSync(const CostModel& model, std::span<const Pipeline> pipelines);

/// When the first ring of each stage begins and the last one ends; equal where it has none. By pipeline and stage.
[[nodiscard]] std::vector<std::vector<std::pair<Seconds, Seconds>>> syncSpans(const CostModel& model,
                                                                              std::span<const Pipeline> pipelines,
                                                                              const StageEnds& ends);

/// With ZeRO-2: how long a device of each [pipeline][stage] sends the gradients of one micro-batch to their owners, unit by unit inside of
/// its backward. Empty otherwise. That of the last micro-batch stands in syncTime(). Pipelines that are cut differently, or have unlike
/// numbers of micro-batches, wait for each other there; that is left out.
[[nodiscard]] StageEnds exchangeTimes(const CostModel& model, std::span<const Pipeline> pipelines);

/// Parameters in the buffer that a device of each [pipeline][stage] sums under device-wise sync: the union of its connected set. The
/// ranks of a tp group are connected by what none of them divides, so it holds all of their shards. 0 where a device is alone.
[[nodiscard]] std::vector<std::vector<std::int64_t>> paddedParameters(const CostModel& model,
                                                                      std::span<const Pipeline> pipelines);

}  // namespace evenkeel
