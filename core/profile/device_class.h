// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>

#include "core/cluster/device_type.h"
#include "core/model/op.h"

namespace evenkeel {

/// How often an op's kernels move the bytes that OpWork::forwardTraffic counts.
struct Passes {
  double forward = 1, backward = 2;
};

/// What collectives make of a link, by number of members.
struct CollectiveShare {
  double bandwidth = 1;  // of the link
  double latencies = 0;  // of the link, for one all-reduce
};

/// What a class of devices makes of its data sheet. Everything that is fitted, not counted, stands here.
struct DeviceClass {
  double forwardEfficiency, backwardEfficiency;           // of the dense peak, in matrix products
  double bandwidthEfficiency;                             // of the memory bandwidth
  Seconds forwardOverhead, backwardOverhead;              // per op, at speed 1
  Seconds forwardReduceOverhead, backwardReduceOverhead;  // of an all-reduce inside an op, beyond its own time
  double optimizerTraffic;                                // bytes read and written per updated parameter
  Bytes reserved;                                         // context and framework, before any tensor of ours
  std::array<Passes, kOpCount> passes;
  Passes residualDropout;                      // of the two ops behind the blocks where dropout runs
  std::array<CollectiveShare, 3> collectives;  // of 2, 4 and 8 members
  double shownError;                           // of iteration times from the analytic profile, a fraction

  /// Between those numbers linear in their logarithm, beyond 8 the bandwidth of 8 and two latencies more a member.
  [[nodiscard]] CollectiveShare collectiveOf(int members) const;
};

/// The class of a device type: "cpu" (one core), a V100 on NVLink, or any other accelerator.
[[nodiscard]] const DeviceClass& deviceClassOf(const DeviceType& device);
/// For accelerators of which nothing was measured.
[[nodiscard]] const DeviceClass& genericAccelerator();

}  // namespace evenkeel
