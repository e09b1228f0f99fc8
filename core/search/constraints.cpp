// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/constraints.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/cost/cost_model.h"
#include "core/search/session.h"

namespace evenkeel {
namespace {

constexpr double kMostReserve = 0.9;

/// A node, a device as "node/index", or all devices of a type.
Result<std::vector<DeviceId>> devicesNamed(const std::string& name, const Cluster& cluster) {
  std::vector<DeviceId> found;
  std::string known;
  for (const Node& node : cluster.nodes) known += (known.empty() ? "" : ", ") + node.name;
  for (const DeviceId device : cluster.devices()) {
    const std::string& node = cluster.nodes[static_cast<std::size_t>(device.node)].name;
    if (name == node || name == cluster.nameOf(device) || name == cluster.typeOf(device).name) found.push_back(device);
  }
  if (found.empty()) {
    return invalidInput("--planner-option exclude", fmt::format("\"{}\" is no node, device or type of the cluster", name),
                        "nodes: " + known);
  }
  return found;
}

}  // namespace

bool Constraints::excludes(DeviceId device) const { return std::ranges::binary_search(excluded, device); }

bool Constraints::allow(std::span<const Pipeline> of) const {
  if (pipelines && static_cast<int>(of.size()) != *pipelines) return false;
  for (const Pipeline& pipeline : of) {
    for (const Stage& stage : pipeline.stages) {
      if ((mostTp && stage.tp > *mostTp) || (!recompute && !stage.recompute.empty())) return false;
      if (!excluded.empty() && std::ranges::any_of(stage.devices, [&](DeviceId device) { return excludes(device); }))
        return false;
    }
  }
  return true;
}

std::span<const PlannerOptionInfo> constraintInfos() {
  static const std::vector<PlannerOptionInfo> known = {
      {"pipelines", "N", "exactly so many pipelines"},
      {"max_tp", "N", "tensor parallelism of at most N"},
      {"exclude", "NAME[,NAME]", "nodes, devices (node/index) or types that stay idle"},
      {"reserve", "F", fmt::format("part of each device's memory that stays free, {} to {}", kMemoryReserve, kMostReserve)}};
  return known;
}

Result<Constraints> constraintsFrom(const PlannerOptions& options, const Cluster& cluster) {
  Constraints constraints;
  for (const auto& [name, field] : {std::pair{"max_tp", &Constraints::mostTp}, {"pipelines", &Constraints::pipelines}}) {
    if (!options.contains(name)) continue;
    const auto value = integerOption(options, name, 1);
    if (!value) return value.error();
    constraints.*field = static_cast<int>(std::min<std::int64_t>(*value, kMaxDevices));
  }
  if (const auto found = options.find("exclude"); found != options.end()) {
    std::string_view rest = found->second;
    while (true) {
      const std::size_t comma = rest.find(',');
      const auto devices = devicesNamed(std::string(rest.substr(0, comma)), cluster);
      if (!devices) return devices.error();
      constraints.excluded.insert(constraints.excluded.end(), devices->begin(), devices->end());
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    std::ranges::sort(constraints.excluded);
  }
  if (const auto found = options.find("reserve"); found != options.end()) {
    const auto value = parseNumber<double>(found->second);
    if (!value || !(*value >= kMemoryReserve && *value <= kMostReserve)) {
      return invalidInput("--planner-option reserve", fmt::format("is \"{}\"", found->second),
                          fmt::format("expected a part from {} (which every plan leaves) to {}", kMemoryReserve, kMostReserve));
    }
    constraints.reserve = *value;
  }
  if (const auto found = options.find("recompute"); found != options.end()) constraints.recompute = found->second != "none";
  for (const auto& [name, value] : options) {
    const bool isConstraint = std::ranges::find(constraintInfos(), name, &PlannerOptionInfo::name) != constraintInfos().end();
    if (isConstraint || (name == "recompute" && !constraints.recompute)) constraints.given.push_back(name + "=" + value);
  }
  return constraints;
}

}  // namespace evenkeel
