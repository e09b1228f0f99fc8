// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "core/search/optimal/packing.h"
#include "core/search/optimal/plan_space.h"
#include "core/search/session.h"

namespace evenkeel::optimal {

/// Makes plans of columns and hands them to the session; remembers the best closed form among all that are valid.
class PlanMaker {
 public:
  PlanMaker(SearchSession& session, PlanSpace& space);

  /// Packs whole columns within as little more than `least` (what fractions of them take) as it can, and equal copies of the best
  /// columns. `holders`: what the columns were made for. How many pipelines the packing has; 0: none found.
  std::size_t plansFrom(std::span<const Column> columns, int holders, double least);

  /// Of the pipelines of the best plan, sync and optimizer left out; infinite: no plan yet.
  [[nodiscard]] double closedForm() const { return closedForm_; }
  void noteClosedForm(const std::vector<Pipeline>& pipelines);

 private:
  /// Equal pipelines, one or as many as the devices make: their rings hold one stage each, so sync is cheap. The best few by the
  /// closed form with sync between nodes.
  [[nodiscard]] std::vector<Packed> copiesOfOne(std::span<const Column> columns, int holders);
  void addPlans(std::span<const Column> columns, const Packed& packed, std::vector<std::vector<Pipeline>>& candidates);

  SearchSession& session_;
  PlanSpace& space_;
  std::vector<std::vector<int>> fillingOrders_;
  double closedForm_ = std::numeric_limits<double>::infinity();
};

}  // namespace evenkeel::optimal
