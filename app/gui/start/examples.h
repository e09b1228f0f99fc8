// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <vector>

#include "core/plan/project.h"

namespace evenkeel::gui {

/// A project to begin with: a drawn cluster and a model that fits it.
struct Example {
  QString title, summary;
  Project project;
};

[[nodiscard]] std::vector<Example> examples();

}  // namespace evenkeel::gui
