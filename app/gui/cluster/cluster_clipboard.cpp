// SPDX-License-Identifier: GPL-3.0-or-later
// Parts of a cluster taken out and put in again: duplicate, copy, paste.
#include <fmt/format.h>

#include <algorithm>

#include "app/gui/cluster/cluster_edits.h"
#include "app/gui/cluster/device_edits.h"

namespace evenkeel::gui {
namespace {

constexpr std::string_view kClipboardFormat = "evenkeel.clipboard/1";

/// The named machines and switches with the connections among them, and their places.
Project partOf(const Project& project, const Items& items) {
  Project part;
  const Places layout = shownLayout(project);
  part.cluster.deviceTypes = project.cluster.deviceTypes;
  std::map<int, int> indexInPart;
  for (std::size_t i = 0; i < project.cluster.nodes.size(); ++i) {
    const Node& node = project.cluster.nodes[i];
    if (!items.contains(node.name)) continue;
    indexInPart[static_cast<int>(i)] = static_cast<int>(part.cluster.nodes.size());
    part.cluster.nodes.push_back(node);
    part.layout[node.name] = layout.at(node.name);
  }
  for (const Link& link : project.cluster.links) {
    if (!indexInPart.contains(link.first) || !indexInPart.contains(link.second)) continue;
    part.cluster.links.push_back({indexInPart.at(link.first), indexInPart.at(link.second), link.spec, link.extra});
  }
  for (Switch s : project.cluster.switches) {
    if (!items.contains(s.name)) continue;
    std::erase_if(s.members, [&](const std::string& member) { return !items.contains(member); });
    part.layout[s.name] = layout.at(s.name);
    part.cluster.switches.push_back(std::move(s));
  }
  std::set<int> used;
  for (const Node& node : part.cluster.nodes) {
    for (const Device& device : node.devices) used.insert(device.type);
  }
  std::vector<int> typeInPart;
  std::vector<DeviceType> types;
  for (std::size_t i = 0; i < part.cluster.deviceTypes.size(); ++i) {
    typeInPart.push_back(static_cast<int>(types.size()));
    if (used.contains(static_cast<int>(i))) types.push_back(part.cluster.deviceTypes[i]);
  }
  part.cluster.deviceTypes = std::move(types);
  for (Node& node : part.cluster.nodes) {
    for (Device& device : node.devices) device.type = typeInPart[static_cast<std::size_t>(device.type)];
  }
  return part;
}

/// The index of a type of the part in the cluster; one that has a known name and other figures gets a name of its own.
int adopt(Cluster& cluster, DeviceType type) {
  const std::string name = type.name;
  for (int number = 2;; ++number) {
    const auto found = std::ranges::find(cluster.deviceTypes, type.name, &DeviceType::name);
    if (found == cluster.deviceTypes.end()) break;
    if (*found == type) return static_cast<int>(found - cluster.deviceTypes.begin());
    type.name = fmt::format("{} ({})", name, number);
  }
  cluster.deviceTypes.push_back(std::move(type));
  return static_cast<int>(cluster.deviceTypes.size()) - 1;
}

std::string withoutNumber(const std::string& name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  if (last == std::string::npos) return "node-";
  const std::string stem = name.substr(0, last + 1);
  return stem.ends_with('-') ? stem : stem.size() < name.size() ? stem : stem + "-";
}

/// Puts the part in as one block, at the free place nearest to `wished`.
Result<Items> insert(Project& project, Project part, CanvasPoint wished, bool keepsCards = false) {
  if (part.cluster.deviceCount() + project.cluster.deviceCount() > kMaxDevices) {
    return invalidInput("cluster", "would have too many devices", fmt::format("the limit is {}", kMaxDevices));
  }
  settle(project);
  settle(part);
  double left = 1e300, top = 1e300, right = -1e300, bottom = -1e300;
  for (const auto& [name, at] : part.layout) {
    const CanvasSize size = sizeOf(part.cluster, name);
    left = std::min(left, at.x);
    top = std::min(top, at.y);
    right = std::max(right, at.x + size.width);
    bottom = std::max(bottom, at.y + size.height);
  }
  if (part.layout.empty()) return Items{};
  const CanvasPoint origin = freePlace(project, project.layout, {right - left, bottom - top}, wished);

  Cluster& cluster = project.cluster;
  std::map<std::string, std::string> newNames;
  const auto take = [&](std::string& name) {
    const std::string old = name;
    const bool taken = findMachine(cluster, old) != nullptr || findSwitch(cluster, old) != nullptr;
    if (taken) name = freeName(cluster, withoutNumber(old));
    newNames[old] = name;
    const CanvasPoint at = part.layout.at(old);
    project.layout[name] = {origin.x + at.x - left, origin.y + at.y - top};
  };
  std::vector<int> types;
  for (const DeviceType& type : part.cluster.deviceTypes) types.push_back(adopt(cluster, type));
  const int firstNode = static_cast<int>(cluster.nodes.size());
  for (Node& node : part.cluster.nodes) {
    take(node.name);
    for (Device& device : node.devices) {
      device.type = types[static_cast<std::size_t>(device.type)];
      if (!keepsCards) device.uuid.clear();  // one physical card cannot stand in two machines
    }
    cluster.nodes.push_back(std::move(node));
  }
  for (const Link& link : part.cluster.links)
    cluster.links.push_back({link.first + firstNode, link.second + firstNode, link.spec, link.extra});
  const std::size_t firstSwitch = cluster.switches.size();
  for (Switch& s : part.cluster.switches) {
    take(s.name);
    cluster.switches.push_back(std::move(s));
  }
  for (std::size_t i = firstSwitch; i < cluster.switches.size(); ++i) {
    for (std::string& member : cluster.switches[i].members) member = newNames.at(member);
  }
  Items added;
  for (const auto& [old, name] : newNames) added.insert(name);
  return added;
}

}  // namespace

Result<Items> duplicate(Project& project, const Items& items) {
  Project part = partOf(project, items);
  CanvasPoint corner{1e300, 1e300};
  for (const auto& [name, at] : part.layout) corner = {std::min(corner.x, at.x), std::min(corner.y, at.y)};
  return insert(project, std::move(part), {corner.x + kGrid, corner.y + kGrid});
}

Result<Items> addCluster(Project& project, Cluster cluster) {
  std::set<std::string> known;
  for (const Node& node : project.cluster.nodes) {
    for (const Device& device : node.devices) known.insert(device.uuid);
  }
  for (const Node& node : cluster.nodes) {
    for (const Device& device : node.devices) {
      if (!device.uuid.empty() && known.contains(device.uuid))
        return invalidInput(node.name, fmt::format("has cards that stand in the cluster already ({})", device.uuid), "remove that machine first, or untick them");
    }
  }
  Project part;
  part.cluster = std::move(cluster);
  return insert(project, std::move(part), {0, 0}, true);
}

std::string copyText(const Project& project, const Items& items) {
  Json json;
  json["format"] = kClipboardFormat;
  json["project"] = toJson(partOf(project, items));
  return prettyText(json);
}

Result<Items> pasteText(Project& project, const std::string& text, CanvasPoint wished) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string::npos)
    return invalidInput("clipboard", "is empty", "copy machines, or a text such as 2x8:A100-80-SXM");
  const std::string trimmed = text.substr(start, text.find_last_not_of(" \t\r\n") - start + 1);
  if (trimmed.front() != '{') {
    auto cluster = parseClusterShorthand(trimmed);
    if (!cluster) return std::move(cluster).error();
    Project part;
    part.cluster = *std::move(cluster);
    return insert(project, std::move(part), wished);
  }
  auto json = parseJson(trimmed, "clipboard");
  if (!json) return std::move(json).error();
  if (json->value("format", Json()) != Json(kClipboardFormat)) {
    return invalidInput("clipboard", "holds no machines", "copy machines, or a text such as 2x8:A100-80-SXM");
  }
  auto part = parseProject(json->value("project", Json()), "clipboard");
  if (!part) return std::move(part).error();
  return insert(project, *std::move(part), wished);
}

}  // namespace evenkeel::gui
