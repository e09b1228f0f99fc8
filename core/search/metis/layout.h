// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/plan/plan.h"

namespace evenkeel::metis {

/// Devices of a stage in order of rank, and how they are made up: (kind as of CostModel, devices of it in a row).
struct DeviceGroup {
  std::vector<DeviceId> devices;
  std::vector<std::pair<int, int>> kinds;
  [[nodiscard]] DeviceId first(int replica, int tp) const { return devices[static_cast<std::size_t>(replica * tp)]; }
};
using Layout = std::vector<DeviceGroup>;

using Degrees = std::vector<std::pair<int, int>>;  // (dp, tp) by stage

/// One strategy of a layout. Layer 0 is the embedding, the last one the head.
struct Costed {
  double estimate = 0;  // seconds, by Metis's own estimator
  std::shared_ptr<const Layout> layout;
  Degrees degrees;
  int microBatch = 1;
  std::vector<int> ends;                 // first layer of each stage, and the end
  std::vector<std::vector<int>> shares;  // samples of each replica, by stage

  [[nodiscard]] const Layout& stages() const { return *layout; }
  /// Every stage has the same replicas, so that they are pipelines of their own.
  [[nodiscard]] bool isApart() const;
};

/// Layers [first, last) of a model of so many, ends included, as units.
[[nodiscard]] UnitRange unitsOf(const Model& model, int first, int last);

/// As a plan of ours: one pipeline, or, where the replicas are apart, one for each of them.
[[nodiscard]] std::vector<Pipeline> pipelinesOf(const Costed& one, const Model& model, std::int64_t globalBatch);

}  // namespace evenkeel::metis
