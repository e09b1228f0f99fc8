// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/search.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/search/best_type/best_type.h"
#include "core/search/eth/eth.h"
#include "core/search/hexiscale/hexiscale.h"
#include "core/search/metis/metis.h"
#include "core/search/node_order.h"
#include "core/search/optimal/optimal.h"
#include "core/search/uniform/uniform.h"

namespace evenkeel {

std::span<const Planner> planners() {
  static const std::vector<Planner> all = [] {
    std::vector<Planner> some;
    for (Planner (*const make)() :
         {optimalPlanner, ethPlanner, metisPlanner, hexiscalePlanner, uniformPlanner, bestTypePlanner})
      some.push_back(inAnyNodeOrder(make()));
    return some;
  }();
  return all;
}

PlannerOptions optionsFor(const Planner& planner, const PlannerOptions& options) {
  PlannerOptions known;
  for (const auto& [name, value] : options) {
    if (std::ranges::find(planner.options, name, &PlannerOptionInfo::name) != planner.options.end()) known.emplace(name, value);
  }
  return known;
}

Result<const Planner*> plannerNamed(std::string_view name) {
  std::string names;
  for (const Planner& planner : planners()) {
    if (planner.name == name) return &planner;
    names += (names.empty() ? "" : ", ") + planner.name;
  }
  return invalidInput("--planner", fmt::format("there is no planner \"{}\"", name), "known: " + names);
}

}  // namespace evenkeel
