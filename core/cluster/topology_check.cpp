// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cluster/topology_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace evenkeel {
namespace {

std::string placeOfSwitch(std::size_t i) { return fmt::format("switches/{}/members", i); }

void checkSwitchNames(const Cluster& cluster, JsonReader& reader) {
  std::set<std::string> names;
  for (const Node& node : cluster.nodes) names.insert(node.name);
  for (std::size_t i = 0; i < cluster.switches.size(); ++i) {
    const std::string& name = cluster.switches[i].name;
    if (name.empty()) reader.fail(fmt::format("switches/{}/name", i), "is empty", "expected a name");
    if (!names.insert(name).second) {
      reader.fail(fmt::format("switches/{}/name", i), fmt::format("\"{}\" is the name of another node or switch", name), "expected names that differ");
    }
  }
  for (std::size_t i = 0; i < cluster.switches.size(); ++i) {
    std::set<std::string> seen;
    for (const std::string& member : cluster.switches[i].members) {
      if (!names.contains(member)) reader.fail(placeOfSwitch(i), fmt::format("names \"{}\", which is no node or switch", member));
      if (!seen.insert(member).second) reader.fail(placeOfSwitch(i), fmt::format("names \"{}\" twice", member));
    }
  }
}

/// Switches that hold each other have no top: a path through them would never end.
void checkLoops(const Cluster& cluster, JsonReader& reader) {
  std::map<std::string, std::size_t> indexOf;
  for (std::size_t i = 0; i < cluster.switches.size(); ++i) indexOf[cluster.switches[i].name] = i;
  // Take away, again and again, the switches that hold none of the others that are left (Kahn): what stays is a loop.
  std::vector<std::size_t> heldSwitches(cluster.switches.size(), 0);
  std::vector<std::vector<std::size_t>> holders(cluster.switches.size());
  for (std::size_t i = 0; i < cluster.switches.size(); ++i) {
    for (const std::string& member : cluster.switches[i].members) {
      const auto found = indexOf.find(member);
      if (found == indexOf.end()) continue;
      ++heldSwitches[i];
      holders[found->second].push_back(i);
    }
  }
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < heldSwitches.size(); ++i) {
    if (heldSwitches[i] == 0) ready.push_back(i);
  }
  std::size_t done = 0;
  for (; done < ready.size(); ++done) {
    for (const std::size_t holder : holders[ready[done]]) {
      if (--heldSwitches[holder] == 0) ready.push_back(holder);
    }
  }
  if (done == cluster.switches.size()) return;
  const auto inLoop = std::ranges::find_if(heldSwitches, [](std::size_t held) { return held > 0; }) - heldSwitches.begin();
  const auto i = static_cast<std::size_t>(inLoop);
  reader.fail(placeOfSwitch(i), fmt::format("switch \"{}\" holds itself, directly or through another switch", cluster.switches[i].name),
              "take one of the switches of this loop out of the other");
}

void checkLinks(const Cluster& cluster, JsonReader& reader) {
  std::set<std::pair<int, int>> joined;
  for (std::size_t i = 0; i < cluster.links.size(); ++i) {
    const Link& link = cluster.links[i];
    if (joined.insert(std::minmax(link.first, link.second)).second) continue;
    const auto nodeName = [&](int node) { return cluster.nodes[static_cast<std::size_t>(node)].name; };
    reader.fail(fmt::format("links/{}/between", i), fmt::format("\"{}\" and \"{}\" are joined by another link already", nodeName(link.first), nodeName(link.second)),
                "leave one of the two out");
  }
}

void checkUuids(const Cluster& cluster, JsonReader& reader) {
  std::map<std::string, std::string> holders;
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
    for (const Device& device : cluster.nodes[n].devices) {
      if (device.uuid.empty()) continue;
      const auto [other, isNew] = holders.emplace(device.uuid, cluster.nodes[n].name);
      if (isNew) continue;
      reader.fail(fmt::format("nodes/{}/devices", n), fmt::format("uuid \"{}\" is also that of a device of \"{}\"", device.uuid.substr(0, 80), other->second),
                  "each card has a uuid of its own");
    }
  }
}

}  // namespace

void checkTopology(const Cluster& cluster, JsonReader& reader) {
  checkSwitchNames(cluster, reader);
  checkLoops(cluster, reader);
  checkLinks(cluster, reader);
  checkUuids(cluster, reader);
}

}  // namespace evenkeel
