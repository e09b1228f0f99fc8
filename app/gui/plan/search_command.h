// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include "app/gui/plan/search_session.h"

namespace evenkeel::gui {

/// The command line that searches for the same plan. Clusters that have a shorthand and models of the catalogue are named; others
/// are written into `folder`, under a name that their content gives, so that the command can be run as it stands.
[[nodiscard]] QString searchCommand(const SearchRequest& request, const QString& folder);
/// The same for `compare` with several planners; request.planner is ignored.
[[nodiscard]] QString compareCommand(const std::vector<const Planner*>& planners, const SearchRequest& request,
                                     const QString& folder);

/// "K=V K=V" as options, or what is wrong with the text.
[[nodiscard]] Result<PlannerOptions> plannerOptionsOf(const QString& text);

}  // namespace evenkeel::gui
