// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "app/gui/plan/plan_facts.h"
#include "app/gui/timeline/slice_model.h"

namespace evenkeel::gui {

/// All of a plan that is shown and takes time to work out: made on another thread, then only painted.
struct PlanPicture {
  std::shared_ptr<const Plan> plan;
  Evaluation evaluation;  // without its timeline; without a prediction if the plan has a wrong shape
  PlanFacts facts;        // empty if the plan has a wrong shape
  std::shared_ptr<const SliceModel> slices;  // null unless asked for
};

/// Cost: one evaluation of the plan, with slices also a simulation: milliseconds each for a thousand devices.
[[nodiscard]] PlanPicture pictureOf(std::shared_ptr<const Plan> plan, bool withSlices);

}  // namespace evenkeel::gui
