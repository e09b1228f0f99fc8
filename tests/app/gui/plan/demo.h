// SPDX-License-Identifier: GPL-3.0-or-later
// The demo that the tests of the Plan and Compare pages search and show.
#pragma once

#include <string>

#include "app/gui/plan/search_session.h"
#include "core/plan/project.h"
#include "core/profile/analytic_profile.h"

namespace evenkeel::gui {

/// Four processor cores in two unlike machines, tiny-gpt, 13 samples an iteration.
inline Project demoProject(const char* cluster = "1x2:cpu@0.5,1x2:cpu@0.25") {
  Project project;
  project.cluster = *parseClusterShorthand(cluster);
  project.model = *modelFromArgument("tiny-gpt");
  project.training.globalBatch = 13;
  return project;
}

inline SearchRequest demoRequest(const char* planner) { return {*plannerNamed(planner), *demoProject().problem(), {}, {}}; }

inline Plan demoPlan(const Project& project = demoProject(), const char* planner = "eth") {
  const AnalyticProfile profile(*project.model, project.problem()->training);
  SearchObserver silent;
  return *(*plannerNamed(planner))->plan({*project.problem(), &profile, {}, {}}, silent, {});
}

/// What `evenkeel-cli plan --events` would have written of a search.
inline std::string eventsOf(const SearchSnapshot& search) {
  std::string text;
  const auto add = [&](Seconds at, const char* event, const Json& fields) {
    Json line;
    line["seconds"] = at.value;
    line["planner"] = search.planner;
    line["event"] = event;
    for (const auto& [key, value] : fields.items()) line[key] = value;
    text += line.dump() + "\n";
  };
  if (search.bound) add({}, "bound", {{"lower_bound_ms", milliseconds(*search.bound)}});
  for (const auto& step : search.steps) add(step.begin, "phase", {{"phase", step.name}});
  for (const auto& point : search.curve)
    add(point.found, "incumbent",
        {{"iteration_ms", milliseconds(point.iteration)}, {"finder", point.finder}, {"plan", toJson(*search.best)}});
  Json pruned = Json::object();
  for (const auto& [reason, count] : search.counters.pruned) pruned[reason] = count;
  add(search.elapsed, "counters",
      {{"evaluated", search.counters.evaluated}, {"cached", search.counters.cached}, {"pruned", pruned}});
  return text;
}

}  // namespace evenkeel::gui
