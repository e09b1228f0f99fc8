// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/device_edits.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/words.h"

namespace evenkeel::gui {
namespace {

constexpr double kNicLatencyUs = 10;  // between nodes unless said, as in cluster files

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string::npos ? std::string() : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Result<int> typeIndex(Cluster& cluster, const std::string& name) {
  const auto found = std::ranges::find(cluster.deviceTypes, name, &DeviceType::name);
  if (found != cluster.deviceTypes.end()) return static_cast<int>(found - cluster.deviceTypes.begin());
  auto type = deviceTypeNamed(name);
  if (!type) return std::move(type).error();
  cluster.deviceTypes.push_back(*std::move(type));
  return static_cast<int>(cluster.deviceTypes.size()) - 1;
}

Result<DeviceGroup> parseGroup(const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string::npos) return DeviceGroup{text, 1};
  std::string rest = trimmed(text.substr(digits));
  if (rest.starts_with("x")) rest.erase(0, 1);
  else if (rest.starts_with("×")) rest.erase(0, std::string_view("×").size());
  else if (text[digits] != ' ') return DeviceGroup{text, 1};  // a type whose name begins with a digit
  const auto count = parseNumber<int>(text.substr(0, digits));
  rest = trimmed(rest);
  if (!count || *count < 1 || *count > kMaxDevices || rest.empty()) {
    return invalidInput("devices", fmt::format("\"{}\" is no number of devices of a type", text.substr(0, 80)),
                        "write for example 4 x A100-80-SXM + 4 x T4");
  }
  return DeviceGroup{rest, *count};
}

}  // namespace

std::vector<DeviceGroup> deviceGroups(const Cluster& cluster, const Node& node) {
  std::vector<DeviceGroup> groups;
  int last = -1;
  for (const Device& device : node.devices) {
    if (device.type == last) ++groups.back().count;
    else groups.push_back({cluster.deviceTypes[static_cast<std::size_t>(device.type)].name, 1});
    last = device.type;
  }
  return groups;
}

std::string devicesText(const Cluster& cluster, const Node& node) {
  std::string text;
  for (const DeviceGroup& group : deviceGroups(cluster, node))
    text += fmt::format("{}{} x {}", text.empty() ? "" : " + ", group.count, group.type);
  return text;
}

Result<std::vector<DeviceGroup>> parseDevices(const std::string& text) {
  std::vector<DeviceGroup> groups;
  std::size_t from = 0;
  for (bool more = true; more;) {
    const std::size_t plus = text.find('+', from);
    more = plus != std::string::npos;
    auto group = parseGroup(trimmed(text.substr(from, more ? plus - from : std::string::npos)));
    if (!group) return std::move(group).error();
    groups.push_back(*std::move(group));
    from = plus + 1;
  }
  return groups;
}

std::vector<DeviceGroup> resized(std::vector<DeviceGroup> groups, int count) {
  int total = 0;
  for (const DeviceGroup& group : groups) total += group.count;
  while (groups.size() > 1 && total - groups.back().count >= count) {
    total -= groups.back().count;
    groups.pop_back();
  }
  groups.back().count += count - total;
  return groups;
}

NodeLinks defaultLinks(const DeviceType& type) {
  return {type.intra, {type.nicBandwidth, fromMicroseconds(kNicLatencyUs)}, type.nicPerDevice};
}

Result<void> setDevices(Cluster& cluster, const std::set<std::string>& machines, const std::vector<DeviceGroup>& groups) {
  if (groups.empty()) return invalidInput("devices", "are none", "a machine has at least one device");
  Cluster after = cluster;
  std::vector<Device> devices;
  std::int64_t count = 0;
  for (const DeviceGroup& group : groups) {
    auto type = typeIndex(after, group.type);
    if (!type) return std::move(type).error();
    count += group.count;
    if (group.count < 1 || count > kMaxDevices)
      return invalidInput("devices", "are too many or too few", fmt::format("use 1 to {}", kMaxDevices));
    devices.insert(devices.end(), static_cast<std::size_t>(group.count), Device{*type, ""});
  }
  const DeviceType& type = after.deviceTypes[static_cast<std::size_t>(devices.front().type)];
  for (Node& node : after.nodes) {
    if (!machines.contains(node.name)) continue;
    if (!node.devices.empty()) {
      const NodeLinks old = defaultLinks(after.deviceTypes[static_cast<std::size_t>(node.devices.front().type)]),
                      fresh = defaultLinks(type);
      if (node.intra == old.intra) node.intra = fresh.intra;
      if (node.nic == old.nic && node.nicPerDevice == old.nicPerDevice) {
        node.nic = fresh.nic;
        node.nicPerDevice = fresh.nicPerDevice;
      }
    }
    // A slot that keeps its type keeps its card.
    std::vector<Device> places = devices;
    for (std::size_t i = 0; i < std::min(places.size(), node.devices.size()); ++i) {
      if (places[i].type == node.devices[i].type) places[i].uuid = node.devices[i].uuid;
    }
    node.devices = std::move(places);
  }
  if (after.deviceCount() > kMaxDevices)
    return invalidInput("cluster", "would have too many devices", fmt::format("the limit is {}", kMaxDevices));
  dropUnusedTypes(after);
  cluster = std::move(after);
  return {};
}

void dropUnusedTypes(Cluster& cluster) {
  std::vector<bool> used(cluster.deviceTypes.size());
  for (const Node& node : cluster.nodes) {
    for (const Device& device : node.devices) used[static_cast<std::size_t>(device.type)] = true;
  }
  std::vector<DeviceType> kept;
  std::vector<int> indexAfter(cluster.deviceTypes.size());
  for (std::size_t i = 0; i < cluster.deviceTypes.size(); ++i) {
    indexAfter[i] = static_cast<int>(kept.size());
    DeviceType& type = cluster.deviceTypes[i];
    const auto known = deviceTypeNamed(type.name);
    if (used[i] || !known || *known != type) kept.push_back(std::move(type));
  }
  cluster.deviceTypes = std::move(kept);
  for (Node& node : cluster.nodes) {
    for (Device& device : node.devices) device.type = indexAfter[static_cast<std::size_t>(device.type)];
  }
}

}  // namespace evenkeel::gui
