// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/plan_picture.h"

#include "core/profile/analytic_profile.h"

namespace evenkeel::gui {

PlanPicture pictureOf(std::shared_ptr<const Plan> plan, bool withSlices) {
  const AnalyticProfile profile(plan->model, plan->training);
  const CostModel model(plan->cluster, plan->model, plan->training, profile);
  PlanPicture picture;
  picture.evaluation = evaluate(model, *plan, plan->predicted ? plan->predicted->lowerBound : Seconds{}, withSlices);
  if (picture.evaluation.plan.predicted) {
    picture.facts = planFacts(picture.evaluation.plan);
    if (withSlices) picture.slices = std::make_shared<const SliceModel>(picture.evaluation.timeline);
  }
  picture.evaluation.timeline = {};
  picture.plan = std::move(plan);
  return picture;
}

}  // namespace evenkeel::gui
