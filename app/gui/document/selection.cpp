// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/document/selection.h"

namespace evenkeel::gui {

void Selection::setItems(std::set<std::string> items) { setStage(std::nullopt, std::move(items)); }

void Selection::setStage(std::optional<StageRef> stage, std::set<std::string> machines) {
  if (stage == stage_ && machines == items_) return;
  stage_ = std::move(stage);
  items_ = std::move(machines);
  emit changed();
}

void Selection::clear() { setStage(std::nullopt, {}); }

}  // namespace evenkeel::gui
