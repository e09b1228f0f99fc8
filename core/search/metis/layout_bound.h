// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <tuple>
#include <unordered_map>

#include "core/base/tuple_hash.h"
#include "core/search/limits.h"
#include "core/search/metis/fair.h"
#include "core/search/metis/layout.h"
#include "core/search/stage_table.h"

namespace evenkeel::metis {

/// Rules out layouts before their strategies are tried one by one. Remembers what it asked. Not thread-safe.
class LayoutBound {
 public:
  /// All are referenced and must outlive this.
  LayoutBound(const CostModel& model, const Limits& limits, const FairOptions& options, StageTables& tables)
      : model_(model), limits_(limits), options_(options), tables_(tables) {}

  /// False: whatever the strategies, no whole layers fit into the stages so that memory holds and the estimate,
  ///     sum_s t_s + (M - 1) max_s t_s,  t_s = layers of s / rate of s,
  /// is no more than that. At a pace p the sum is least where the fastest stages are filled up to p, which says how slow p may
  /// be, which again says more of the sum.
  [[nodiscard]] bool mayBeWithin(const Layout& stages, int microBatch, double estimate);

 private:
  /// Of a stage of one kind with so many replicas: samples in a second of the whole model and of one layer.
  struct Way {
    int dp = 1;
    double model = 0, layer = 0;
  };
  struct Rates {
    double model = 0, layer = 0;
  };
  [[nodiscard]] const std::vector<Way>& waysOf(int kind, int size, int microBatch);
  [[nodiscard]] const Rates& bestRates(int kind, int microBatch);
  [[nodiscard]] double modelRate(const DeviceGroup& stage, int microBatch);
  [[nodiscard]] int layersThatFit(int kind, int size, int dp, int microBatch, int inFlight);
  [[nodiscard]] int mostLayers(const DeviceGroup& stage, int microBatch, int inFlight, double pace);

  const CostModel& model_;
  const Limits& limits_;
  const FairOptions& options_;
  StageTables& tables_;
  std::unordered_map<std::tuple<int, int, int>, std::vector<Way>, TupleHash> ways_;        // by kind, devices, micro-batch
  std::unordered_map<std::tuple<int, int>, Rates, TupleHash> bestRates_;                   // by kind and micro-batch
  std::unordered_map<std::tuple<int, int, int, int, int>, int, TupleHash> layersThatFit_;  // by kind, devices, dp, micro-batch, in flight
  std::vector<std::pair<double, int>> rates_;                                              // of the layout at hand
};

}  // namespace evenkeel::metis
