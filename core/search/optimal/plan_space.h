// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/search/limits.h"
#include "core/search/optimal/price_search.h"

namespace evenkeel::optimal {

/// What may be planned: devices and groups, options of stages, prices to begin with.
class PlanSpace {
 public:
  /// `model` must outlive this.
  PlanSpace(const CostModel& model, Limits limits, std::optional<int> pipelines);

  [[nodiscard]] const CostModel& model() const { return model_; }
  [[nodiscard]] const Limits& limits() const { return limits_; }
  [[nodiscard]] std::int64_t batch() const { return model_.training().globalBatch; }
  [[nodiscard]] bool isSharded() const { return model_.training().zeroStage > 0; }
  [[nodiscard]] const std::vector<Resource>& resources() const { return resources_; }
  [[nodiscard]] const std::vector<int>& amounts() const { return amounts_; }  // of the resources
  /// How many pipelines a person demands.
  [[nodiscard]] std::optional<int> pipelines() const { return pipelines_; }
  [[nodiscard]] int deviceCount() const { return static_cast<int>(limits_.devices.size()); }

  /// So few devices that there is time to try nearly everything.
  [[nodiscard]] bool isTiny() const { return deviceCount() <= 8; }

  /// Of stages whose state is sharded over so many holders, made once. All lists of options are in the same order. ZeRO-2 sends
  /// gradients to `exchangers` of them, all unless said.
  [[nodiscard]] const StageOptions& options(int holders, int exchangers = 0);
  /// For a bound of the closed form within what is planned: these tp and micro-batches; state sharded as far as it ever could be.
  [[nodiscard]] StageOptions planBoundOptions() const;
  /// For a bound of every valid plan: any tp that divides, any number of samples, all ops recomputed.
  [[nodiscard]] StageOptions boundOptions() const;

  /// Of about so many pipelines.
  [[nodiscard]] std::vector<double> planSyncRates(int pipelines) const;
  /// By peak FLOP/s.
  [[nodiscard]] std::vector<double> firstPrices() const;
  /// For plan.search, and back: those of the types that the cluster has too. Nothing: the field is missing, or of other types.
  [[nodiscard]] Json toJson(const std::vector<double>& prices) const;
  [[nodiscard]] std::optional<std::vector<double>> pricesFrom(const Json& search) const;
  static constexpr const char* kPricesField = "prices";
  /// So that all resources cost 1 together.
  [[nodiscard]] std::vector<double> normalized(std::vector<double> prices) const;

 private:
  [[nodiscard]] StageOptions::Space space(Purpose purpose, int holders) const;

  const CostModel& model_;
  Limits limits_;
  std::optional<int> pipelines_;
  std::vector<Resource> resources_;
  std::vector<int> amounts_, kinds_;
  std::map<std::pair<int, int>, std::unique_ptr<StageOptions>> options_;  // by holders and exchangers
};

}  // namespace evenkeel::optimal
