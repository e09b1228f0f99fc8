// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/tp_groups.h"

#include <algorithm>
#include <map>

namespace evenkeel {

std::vector<TpGroup> tpGroups(const Cluster& cluster, std::span<const DeviceId> devices, int tp) {
  std::vector<TpGroup> groups;
  std::map<std::pair<int, int>, TpGroup> open;  // (node, type) -> the group that is being filled
  for (const DeviceId device : devices) {
    TpGroup& group = open[{device.node, cluster.typeIndexOf(device)}];
    group.push_back(device);
    if (static_cast<int>(group.size()) == tp) groups.push_back(std::exchange(group, {}));
  }
  std::ranges::sort(groups);
  return groups;
}

}  // namespace evenkeel
