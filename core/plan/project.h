// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/problem.h"

namespace evenkeel {

/// Where a machine or switch stands on the canvas, in canvas units (20 to a grid step).
struct CanvasPoint {
  double x = 0, y = 0;
  bool operator==(const CanvasPoint&) const = default;
};

struct NamedPlan {
  std::string name;  // "eth, 14:02"; differs from those of the project's other plans
  Plan plan;
  bool operator==(const NamedPlan&) const = default;
};

/// One file to send to a colleague: what is drawn, what is trained, what was planned, what was run. Pure data.
struct Project {
  Cluster cluster;                            // may have no nodes yet
  std::optional<Model> model;
  TrainingChoice training;                    // what it leaves open follows cluster and model
  std::map<std::string, CanvasPoint> layout;  // by name of node or switch; others are placed when they are shown
  std::vector<NamedPlan> plans;
  std::vector<std::string> runs;              // ids of the run history
  Json extra;
  bool operator==(const Project&) const = default;

  /// What a planner is given; nothing while there is no node or no model.
  [[nodiscard]] std::optional<Problem> problem() const;
};

inline constexpr std::string_view kProjectFormat = "evenkeel.project/1";

[[nodiscard]] Result<Project> parseProject(const Json& json, const std::string& source);
[[nodiscard]] Result<Project> loadProject(const std::filesystem::path& file);
[[nodiscard]] Json toJson(const Project& project);

}  // namespace evenkeel
