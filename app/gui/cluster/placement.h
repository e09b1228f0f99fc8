// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/plan/project.h"

namespace evenkeel::gui {

/// Sizes on the canvas, in canvas units; a layout holds the top left corners.
inline constexpr double kGrid = 20;
inline constexpr double kMachineWidth = 180, kMachineHeight = 100;
inline constexpr double kSwitchWidth = 140, kSwitchHeight = 40;
inline constexpr double kCellWidth = 280, kCellHeight = 160;  // of an arranged machine

using Places = std::map<std::string, CanvasPoint>;

struct CanvasSize {
  double width = 0, height = 0;
};

[[nodiscard]] CanvasPoint snapped(CanvasPoint point);

/// Where every machine and switch is shown: where the project says, the others in rows below those, or arranged if none is
/// placed.
[[nodiscard]] Places shownLayout(const Project& project);

/// Writes what is shown into the project, so that placing one thing does not move another. Forgets things that are gone.
void settle(Project& project);

/// The grid point nearest to `wished` where a thing of this size keeps three grid steps of distance from all in the layout.
[[nodiscard]] CanvasPoint freePlace(const Project& project, const Places& layout, CanvasSize size, CanvasPoint wished);

/// Machines in rows by type, then by name; the switches in a row above them.
[[nodiscard]] Places arranged(const Cluster& cluster);

[[nodiscard]] CanvasSize sizeOf(const Cluster& cluster, const std::string& item);

/// "node-2" before "node-10".
[[nodiscard]] bool comesBefore(const std::string& a, const std::string& b);

}  // namespace evenkeel::gui
