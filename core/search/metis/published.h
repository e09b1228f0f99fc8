// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/search/limits.h"
#include "core/search/metis/fair.h"
#include "core/search/metis/original.h"

namespace evenkeel::metis {

/// Public Metis as it is published, asked about a problem of ours: what it would be given, and which of its plans can be run.
class Published {
 public:
  /// The profiles that it would be given come from our op costs: layers whole, forward and backward together, memory of a layer as
  /// without ZeRO (weights, gradients, optimizer, the activations of one micro-batch), up to options.mostSamples samples of a
  /// replica in powers of two. Its inter_bandwidth is never used (fault B3), so that nodes are joined as their devices are. Types
  /// come in the order of the cluster first. `model` must outlive it. InvalidInput where it cannot be asked: it ends in an error
  /// unless the number of devices is a power of two (fault B4), and knows no nodes of unlike devices.
  [[nodiscard]] static Result<Published> of(const CostModel& model, const Limits& limits, const FairOptions& options);

  [[nodiscard]] const OriginalCase& given() const { return given_; }
  /// The plan as ours: tp groups of neighbouring ranks. Empty where layers are lost or a stage has none (fault B7): nobody can run
  /// that. Shape and memory are not looked at.
  [[nodiscard]] std::vector<Pipeline> pipelinesOf(const OriginalPlan& plan) const;

 private:
  explicit Published(const CostModel& model) : model_(&model) {}
  void addProfiles(const Limits& limits, const FairOptions& options);
  [[nodiscard]] std::string nameOf(int kind) const { return std::to_string(kind); }

  const CostModel* model_;
  OriginalCase given_;
  std::map<std::string, std::vector<DeviceId>> devices_;  // by name of their kind, in order of rank
};

}  // namespace evenkeel::metis
