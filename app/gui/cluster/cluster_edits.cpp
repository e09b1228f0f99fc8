// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/cluster_edits.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/gui/cluster/device_edits.h"

namespace evenkeel::gui {
namespace {

constexpr double kSwitchGbs = 25;  // 200 Gb/s, the port of a data-centre switch
constexpr double kFarthest = 1e6;  // what a project file can hold

template <class T>
auto* byName(T& list, const std::string& name) {
  const auto found = std::ranges::find_if(list, [&](const auto& entry) { return entry.name == name; });
  return found == list.end() ? nullptr : &*found;
}

bool isTaken(const Cluster& cluster, const std::string& name) {
  return findMachine(cluster, name) != nullptr || findSwitch(cluster, name) != nullptr;
}

int indexOf(const Cluster& cluster, const std::string& node) {
  const auto found = std::ranges::find(cluster.nodes, node, &Node::name);
  return found == cluster.nodes.end() ? -1 : static_cast<int>(found - cluster.nodes.begin());
}

Link* findLink(Cluster& cluster, int a, int b) {
  const auto found = std::ranges::find_if(
      cluster.links, [&](const Link& l) { return (l.first == a && l.second == b) || (l.first == b && l.second == a); });
  return found == cluster.links.end() ? nullptr : &*found;
}

}  // namespace

std::string connectionKey(const std::string& first, const std::string& second) { return first + "|" + second; }

std::string linkKey(const Cluster& cluster, const Link& link) {
  return connectionKey(cluster.nodes[static_cast<std::size_t>(link.first)].name,
                       cluster.nodes[static_cast<std::size_t>(link.second)].name);
}

Node* findMachine(Cluster& cluster, const std::string& name) { return byName(cluster.nodes, name); }
const Node* findMachine(const Cluster& cluster, const std::string& name) { return byName(cluster.nodes, name); }
Switch* findSwitch(Cluster& cluster, const std::string& name) { return byName(cluster.switches, name); }
const Switch* findSwitch(const Cluster& cluster, const std::string& name) { return byName(cluster.switches, name); }

Items allItems(const Cluster& cluster) {
  Items items;
  for (const Node& node : cluster.nodes) items.insert(node.name);
  for (const Link& link : cluster.links) items.insert(linkKey(cluster, link));
  for (const Switch& s : cluster.switches) {
    items.insert(s.name);
    for (const std::string& member : s.members) items.insert(connectionKey(s.name, member));
  }
  return items;
}

std::string freeName(const Cluster& cluster, const std::string& stem) {
  std::set<std::string> taken;
  for (const Node& node : cluster.nodes) taken.insert(node.name);
  for (const Switch& s : cluster.switches) taken.insert(s.name);
  for (int number = 0;; ++number) {
    std::string name = fmt::format("{}{}", stem, number);
    if (!taken.contains(name)) return name;
  }
}

Result<std::string> addMachine(Project& project, const std::string& typeName, int count, CanvasPoint wished) {
  Project after = project;
  settle(after);
  Node node;
  node.name = freeName(after.cluster, "node-");
  const std::string name = node.name;
  const CanvasPoint at = freePlace(after, after.layout, {kMachineWidth, kMachineHeight}, wished);
  after.cluster.nodes.push_back(std::move(node));
  if (auto set = setDevices(after.cluster, {name}, {{typeName, count}}); !set) return set.error();
  Node& added = after.cluster.nodes.back();
  const NodeLinks links = defaultLinks(after.cluster.deviceTypes[static_cast<std::size_t>(added.devices.front().type)]);
  added.intra = links.intra;
  added.nic = links.nic;
  added.nicPerDevice = links.nicPerDevice;
  after.layout[name] = at;
  project = std::move(after);
  return name;
}

std::string addSwitch(Project& project, CanvasPoint wished) {
  settle(project);
  Switch added;
  added.name = freeName(project.cluster, "switch-");
  added.bandwidth = fromGbs(kSwitchGbs);
  project.layout[added.name] = freePlace(project, project.layout, {kSwitchWidth, kSwitchHeight}, wished);
  project.cluster.switches.push_back(added);
  return added.name;
}

void removeItems(Project& project, const Items& items) {
  settle(project);
  Cluster& cluster = project.cluster;
  // Connections first: their keys are made of names.
  std::erase_if(cluster.links, [&](const Link& link) {
    return items.contains(linkKey(cluster, link)) || items.contains(cluster.nodes[static_cast<std::size_t>(link.first)].name) ||
           items.contains(cluster.nodes[static_cast<std::size_t>(link.second)].name);
  });
  for (Switch& s : cluster.switches) {
    std::erase_if(s.members, [&](const std::string& member) {
      return items.contains(member) || items.contains(connectionKey(s.name, member));
    });
  }
  std::erase_if(cluster.switches, [&](const Switch& s) { return items.contains(s.name); });
  std::vector<int> indexAfter(cluster.nodes.size(), -1);
  int kept = 0;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    if (!items.contains(cluster.nodes[i].name)) indexAfter[i] = kept++;
  }
  std::erase_if(cluster.nodes, [&](const Node& node) { return items.contains(node.name); });
  for (Link& link : cluster.links) {
    link.first = indexAfter[static_cast<std::size_t>(link.first)];
    link.second = indexAfter[static_cast<std::size_t>(link.second)];
  }
  dropUnusedTypes(cluster);
  settle(project);
}

Result<void> rename(Project& project, const std::string& from, const std::string& to) {
  Cluster& cluster = project.cluster;
  if (from == to || !isTaken(cluster, from)) return {};
  if (to.empty() || to.find_first_of("/|") != std::string::npos) {
    return to.empty() ? invalidInput(from, "needs a name") : invalidInput(from, fmt::format("\"{}\" is not a usable name", to), "use a name without / and |");
  }
  if (isTaken(cluster, to))
    return invalidInput(from, fmt::format("\"{}\" is the name of another machine or switch", to), "use a name that differs");
  if (Node* node = findMachine(cluster, from)) node->name = to;
  else findSwitch(cluster, from)->name = to;
  for (Switch& s : cluster.switches) std::ranges::replace(s.members, from, to);
  if (auto place = project.layout.extract(from)) {
    place.key() = to;
    project.layout.insert(std::move(place));
  }
  return {};
}

/// Whether a switch has `name` below it, directly or through other switches. The cluster has no loops.
static bool holds(const Cluster& cluster, const Switch& top, const std::string& name) {
  return std::ranges::any_of(top.members, [&](const std::string& member) {
    const auto inner = std::ranges::find(cluster.switches, member, &Switch::name);
    return member == name || (inner != cluster.switches.end() && holds(cluster, *inner, name));
  });
}

Result<std::string> connectItems(Project& project, const std::string& first, const std::string& second) {
  Cluster& cluster = project.cluster;
  if (first == second || !isTaken(cluster, first) || !isTaken(cluster, second)) {
    return invalidInput(first, "cannot be linked to itself or to nothing", "choose two unlike machines or switches");
  }
  Switch* hub = findSwitch(cluster, first);
  const std::string& member = hub != nullptr ? second : first;
  if (hub == nullptr) hub = findSwitch(cluster, second);
  if (hub != nullptr) {
    const Switch* other = findSwitch(cluster, member);
    if (other != nullptr && std::ranges::find(other->members, hub->name) != other->members.end())
      return connectionKey(other->name, hub->name);
    if (std::ranges::find(hub->members, member) != hub->members.end()) return connectionKey(hub->name, member);
    if (other != nullptr && holds(cluster, *other, hub->name)) {
      return invalidInput(hub->name, fmt::format("is already inside {}, so that it cannot hold it", member), "a loop of switches has no top: join the machines instead");
    }
    hub->members.push_back(member);
    return connectionKey(hub->name, member);
  }
  const int a = indexOf(cluster, first), b = indexOf(cluster, second);
  if (const Link* link = findLink(cluster, a, b)) return linkKey(cluster, *link);
  setLink(project, first, second, cluster.linkBetween({a, 0}, {b, 0}));
  return connectionKey(first, second);
}

void setLink(Project& project, const std::string& first, const std::string& second, LinkSpec spec) {
  Cluster& cluster = project.cluster;
  const int a = indexOf(cluster, first), b = indexOf(cluster, second);
  if (a < 0 || b < 0 || a == b) return;
  if (Link* link = findLink(cluster, a, b)) link->spec = spec;
  else cluster.links.push_back({a, b, spec});
}

void setBandwidth(LinkSpec& link, BytesPerSecond bandwidth) {
  for (MessageRate& rate : link.table) rate.bandwidth = (bandwidth / link.bandwidth) * rate.bandwidth;
  link.bandwidth = bandwidth;
}

void moveItems(Project& project, const Items& items, double dx, double dy) {
  settle(project);
  for (auto& [name, point] : project.layout) {
    if (!items.contains(name)) continue;
    point.x = std::clamp(point.x + dx, -kFarthest, kFarthest);
    point.y = std::clamp(point.y + dy, -kFarthest, kFarthest);
  }
}

void arrange(Project& project) { project.layout = arranged(project.cluster); }

void changeMachines(Project& project, const Items& items, const std::function<void(Node&)>& change) {
  for (Node& node : project.cluster.nodes) {
    if (items.contains(node.name)) change(node);
  }
}

void changeLinks(Project& project, const Items& items, const std::function<void(Link&)>& change) {
  for (Link& link : project.cluster.links) {
    if (items.contains(linkKey(project.cluster, link))) change(link);
  }
}

void changeSwitches(Project& project, const Items& items, const std::function<void(Switch&)>& change) {
  for (Switch& s : project.cluster.switches) {
    if (items.contains(s.name)) change(s);
  }
}

}  // namespace evenkeel::gui
