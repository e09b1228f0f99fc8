// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/cluster/catalogue.h"
#include "core/cluster/cluster.h"

/// What devices machines have, and what follows from that.
namespace evenkeel::gui {

struct DeviceGroup {
  std::string type;  // "A100-80-SXM", "cpu@0.25"
  int count = 1;
  bool operator==(const DeviceGroup&) const = default;
};

/// Equal devices in a row are one group: "4 x A100-80-SXM", "4 x T4".
[[nodiscard]] std::vector<DeviceGroup> deviceGroups(const Cluster& cluster, const Node& node);
/// "8 x A100-80-SXM", "4 x A100-80-SXM + 4 x T4".
[[nodiscard]] std::string devicesText(const Cluster& cluster, const Node& node);
/// The same read back: groups joined by +, with x or × after the count; no count: 1.
[[nodiscard]] Result<std::vector<DeviceGroup>> parseDevices(const std::string& text);

/// The same with this many devices: cut at the end, or with more of the last type.
[[nodiscard]] std::vector<DeviceGroup> resized(std::vector<DeviceGroup> groups, int count);

/// The links that a node has by its first device's type.
struct NodeLinks {
  LinkSpec intra, nic;
  bool nicPerDevice = false;
};
[[nodiscard]] NodeLinks defaultLinks(const DeviceType& type);

/// Gives the machines these devices. Links that were those of the old type become those of the new one; others stay.
/// A refusal (unknown type, too many devices) changes nothing.
[[nodiscard]] Result<void> setDevices(Cluster& cluster, const std::set<std::string>& machines,
                                      const std::vector<DeviceGroup>& groups);

/// Forgets types of the catalogue that no device has. Types that a file defined stay: they exist nowhere else.
void dropUnusedTypes(Cluster& cluster);

}  // namespace evenkeel::gui
