// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/placement.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace evenkeel::gui {
namespace {

constexpr double kGap = 3 * kGrid;   // between what is added and what is there: room for a link and its label
constexpr int kFarthestRing = 2000;  // grid steps; beyond it a place is taken without looking

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};

bool overlap(const Box& a, const Box& b) { return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom; }

/// The part before the digits at the end, and how many and which digits those are: numbers compare by length first.
std::tuple<std::string, std::size_t, std::string> nameParts(const std::string& name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::size_t digits = last == std::string::npos ? 0 : last + 1;
  return {name.substr(0, digits), name.size() - digits, name.substr(digits)};
}

int firstType(const Node& node) { return node.devices.empty() ? 0 : node.devices.front().type; }

/// Fills the places of `names` row by row from `origin`; `startsRow[i]` begins a new row at i.
void fillRows(Places& layout, const std::vector<std::string>& names, const std::vector<bool>& startsRow, std::size_t columns,
              CanvasPoint origin) {
  std::size_t column = 0;
  double y = origin.y;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (column == columns || (column > 0 && startsRow[i])) {
      column = 0;
      y += kCellHeight;
    }
    layout[names[i]] = {origin.x + static_cast<double>(column++) * kCellWidth, y};
  }
}

std::size_t columnsFor(std::size_t count) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count)) * 1.1)));
}

}  // namespace

CanvasPoint snapped(CanvasPoint point) { return {std::round(point.x / kGrid) * kGrid, std::round(point.y / kGrid) * kGrid}; }

bool comesBefore(const std::string& a, const std::string& b) { return nameParts(a) < nameParts(b); }

CanvasSize sizeOf(const Cluster& cluster, const std::string& item) {
  const bool isSwitch = std::ranges::any_of(cluster.switches, [&](const Switch& s) { return s.name == item; });
  return isSwitch ? CanvasSize{kSwitchWidth, kSwitchHeight} : CanvasSize{kMachineWidth, kMachineHeight};
}

namespace {

/// The nodes of one site: rows by type, inside by name.
Places arrangedSite(std::vector<const Node*> nodes, std::size_t columns) {
  std::ranges::stable_sort(nodes, [](const Node* a, const Node* b) {
    return firstType(*a) != firstType(*b) ? firstType(*a) < firstType(*b) : comesBefore(a->name, b->name);
  });
  std::vector<std::string> names;
  std::vector<bool> startsRow;
  for (std::size_t i = 0, inRow = 0; i < nodes.size(); ++i) {
    const bool newType = i == 0 || firstType(*nodes[i]) != firstType(*nodes[i - 1]);
    const auto ofType =
        static_cast<std::size_t>(std::count_if(nodes.begin() + static_cast<std::ptrdiff_t>(i), nodes.end(),
                                               [&](const Node* n) { return firstType(*n) == firstType(*nodes[i]); }));
    const bool breaks = newType && inRow % columns + std::min(ofType, columns) > columns;
    inRow = breaks ? 1 : inRow % columns + 1;
    names.push_back(nodes[i]->name);
    startsRow.push_back(breaks);
  }
  Places layout;
  fillRows(layout, names, startsRow, columns, {0, 0});
  return layout;
}

/// How many switches stand between a switch and its nodes. A cycle, which a file may hold until it is checked, counts as long
/// as there are switches.
std::size_t levelOf(const Cluster& cluster, const Switch& s, std::size_t deepest) {
  std::size_t level = 0;
  for (const Switch& below : cluster.switches) {
    const bool isMember = std::ranges::find(s.members, below.name) != s.members.end();
    if (isMember && deepest > 0) level = std::max(level, 1 + levelOf(cluster, below, deepest - 1));
  }
  return level;
}

}  // namespace

/// Sites, which are the nodes of one switch, from left to right; above each its switch, above those the switches that join them.
Places arranged(const Cluster& cluster) {
  std::vector<std::vector<const Node*>> sites(cluster.switches.size() + 1);  // the last one: of no switch
  for (const Node& node : cluster.nodes) {
    const auto own = std::ranges::find_if(
        cluster.switches, [&](const Switch& s) { return std::ranges::find(s.members, node.name) != s.members.end(); });
    sites[static_cast<std::size_t>(own - cluster.switches.begin())].push_back(&node);
  }
  std::vector<std::size_t> levels;
  for (const Switch& s : cluster.switches) levels.push_back(levelOf(cluster, s, cluster.switches.size()));
  const std::size_t rows = levels.empty() ? 0 : *std::ranges::max_element(levels) + 1;
  constexpr double kRowHeight = kSwitchHeight + 4 * kGrid;
  const double top = static_cast<double>(rows) * kRowHeight + (rows > 0 ? kGrid : 0);

  const auto count = std::ranges::count_if(sites, [](const auto& site) { return !site.empty(); });
  Places layout;
  double left = 0;
  for (const auto& site : sites) {
    if (site.empty()) continue;
    // Sites stand abreast: each is rather high than wide, so that the picture keeps the shape of a window.
    const std::size_t columns = count > 1 ? static_cast<std::size_t>(std::sqrt(static_cast<double>(site.size()))) : columnsFor(site.size());
    for (const auto& [name, at] : arrangedSite(site, columns)) layout[name] = {at.x + left, at.y + top};
    left += static_cast<double>(columns) * kCellWidth;
  }
  // A switch stands over the middle of its members, which stand already; those without members at the right.
  std::vector<double> taken(rows, -1e300);  // of each row, how far it is filled
  for (std::size_t level = 0; level < rows; ++level) {
    for (std::size_t i = 0; i < levels.size(); ++i) {
      if (levels[i] != level) continue;
      const Switch& s = cluster.switches[i];
      double least = 1e300, most = -1e300;
      for (const std::string& member : s.members) {
        const auto at = layout.find(member);
        if (at == layout.end()) continue;
        least = std::min(least, at->second.x);
        most = std::max(most, at->second.x + sizeOf(cluster, member).width);
      }
      const double wished = least > most ? std::max(0.0, taken[level]) : (least + most - kSwitchWidth) / 2;
      const double x = std::max(wished, taken[level]);
      layout[s.name] = snapped({x, static_cast<double>(rows - 1 - level) * kRowHeight});
      taken[level] = x + kSwitchWidth + 3 * kGrid;
    }
  }
  return layout;
}

Places shownLayout(const Project& project) {
  Places layout;
  std::vector<std::string> unplaced;
  const auto place = [&](const std::string& name) {
    const auto found = project.layout.find(name);
    if (found == project.layout.end()) unplaced.push_back(name);
    else layout.insert(*found);
  };
  for (const Node& node : project.cluster.nodes) place(node.name);
  for (const Switch& s : project.cluster.switches) place(s.name);
  if (unplaced.empty()) return layout;
  if (layout.empty()) return arranged(project.cluster);
  CanvasPoint origin{1e300, -1e300};
  for (const auto& [name, point] : layout) origin = {std::min(origin.x, point.x), std::max(origin.y, point.y)};
  fillRows(layout, unplaced, std::vector<bool>(unplaced.size()), columnsFor(unplaced.size()),
           snapped({origin.x, origin.y + kCellHeight}));
  return layout;
}

void settle(Project& project) { project.layout = shownLayout(project); }

CanvasPoint freePlace(const Project& project, const Places& layout, CanvasSize size, CanvasPoint wished) {
  std::set<std::string> switches;
  for (const Switch& s : project.cluster.switches) switches.insert(s.name);
  std::vector<Box> taken;
  for (const auto& [name, at] : layout) {
    const bool isSwitch = switches.contains(name);
    const double width = isSwitch ? kSwitchWidth : kMachineWidth, height = isSwitch ? kSwitchHeight : kMachineHeight;
    taken.push_back({at.x - kGap, at.y - kGap, at.x + width + kGap, at.y + height + kGap});
  }
  const CanvasPoint start = snapped(wished);
  const auto isFree = [&](CanvasPoint at) {
    return std::ranges::none_of(taken, [&](const Box& box) {
      return overlap(box, {at.x, at.y, at.x + size.width, at.y + size.height});
    });
  };
  // Rings around the wish, each from its right side on: what is added again and again makes a row.
  for (int ring = 0; ring < kFarthestRing; ++ring) {
    for (int along = 0; along <= 2 * ring; ++along) {
      const double r = ring * kGrid, a = (along % 2 == 0 ? along / 2 : -(along + 1) / 2) * kGrid;
      for (const CanvasPoint at : {CanvasPoint{start.x + r, start.y + a},
                                   {start.x + a, start.y + r},
                                   {start.x - r, start.y + a},
                                   {start.x + a, start.y - r}}) {
        if (isFree(at)) return at;
      }
    }
  }
  return start;
}

}  // namespace evenkeel::gui
