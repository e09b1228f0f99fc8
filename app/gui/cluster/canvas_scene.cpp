// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/canvas_scene.h"

#include <algorithm>
#include <cmath>

#include "app/gui/cluster/cluster_text.h"
#include "app/gui/cluster/device_edits.h"

namespace evenkeel::gui {
namespace {

constexpr double kMargin = 20'000;  // canvas around the drawing that one can move to

constexpr double kPortWidth = 1.5;

/// Wider for faster, by powers of ten: 1 GB/s is thin, 1 TB/s is thick.
double widthOf(BytesPerSecond bandwidth) { return std::clamp(1.5 + std::log10(std::max(1.0, gbs(bandwidth))), 1.5, 4.5); }

MachineItem::Content contentOf(const Cluster& cluster, const Node& node) {
  MachineItem::Content content;
  std::size_t slot = 0;
  for (const DeviceGroup& group : deviceGroups(cluster, node)) {
    content.groups.push_back({QStringLiteral("%1 × %2").arg(group.count).arg(QString::fromStdString(group.type)),
                              node.devices[slot].type, group.count});
    slot += static_cast<std::size_t>(group.count);
  }
  content.detail =
      CanvasScene::tr("inside %1 · NIC %2 GB/s").arg(numberText(gbs(node.intra.bandwidth)), numberText(gbs(node.nic.bandwidth)));
  return content;
}

}  // namespace

void CanvasScene::removeLink(LinkItem* link) {
  std::erase(link->first.links, link);
  std::erase(link->second.links, link);
  links_.erase(link->key);
  delete link;
}

void CanvasScene::removeBox(BoxItem* box) {
  while (!box->links.empty()) removeLink(box->links.back());
  boxes_.erase(box->name);
  delete box;
}

template <class Item>
Item& CanvasScene::boxFor(const std::string& name) {
  BoxItem* known = box(name);
  if (auto* same = dynamic_cast<Item*>(known)) return *same;
  if (known != nullptr) removeBox(known);  // a machine now has the name that a switch had
  auto* made = new Item(name);
  boxes_[name] = made;
  addItem(made);
  return *made;
}

void CanvasScene::show(const Project& project) {
  const Cluster& cluster = project.cluster;
  layout_ = shownLayout(project);
  std::vector<BoxItem*> gone;
  for (const auto& [name, item] : boxes_) {
    if (!layout_.contains(name)) gone.push_back(item);
  }
  for (BoxItem* item : gone) removeBox(item);
  for (const Node& node : cluster.nodes) boxFor<MachineItem>(node.name).setContent(contentOf(cluster, node));
  for (const Switch& s : cluster.switches)
    boxFor<SwitchItem>(s.name).setDetail(tr("%1 GB/s a port").arg(numberText(gbs(s.bandwidth))));
  for (const auto& [name, point] : layout_) box(name)->moveTo({point.x, point.y});

  Items keys;
  for (const Link& link : cluster.links) {
    const std::string& a = cluster.nodes[static_cast<std::size_t>(link.first)].name;
    const std::string& b = cluster.nodes[static_cast<std::size_t>(link.second)].name;
    keys.insert(connectionKey(a, b));
    showLink(connectionKey(a, b), a, b, tr("%1 GB/s").arg(numberText(gbs(link.spec.bandwidth))), widthOf(link.spec.bandwidth));
  }
  for (const Switch& s : cluster.switches) {
    for (const std::string& member : s.members) {
      keys.insert(connectionKey(s.name, member));
      showLink(connectionKey(s.name, member), s.name, member, {}, kPortWidth);
    }
  }
  std::vector<LinkItem*> cut;
  for (const auto& [key, item] : links_) {
    if (!keys.contains(key)) cut.push_back(item);
  }
  for (LinkItem* item : cut) removeLink(item);
  setSceneRect(boundsOf({}).adjusted(-kMargin, -kMargin, kMargin, kMargin));
}

void CanvasScene::showLink(const std::string& key, const std::string& first, const std::string& second, const QString& label,
                           double width) {
  BoxItem* a = box(first);
  BoxItem* b = box(second);
  if (a == nullptr || b == nullptr || a == b) return;
  LinkItem*& item = links_[key];
  if (item == nullptr) {
    item = new LinkItem(key, *a, *b);
    addItem(item);
  }
  item->setContent(label, width);
}

void CanvasScene::mark(const Items& selected) {
  for (const auto& [name, item] : boxes_) item->setMarked(selected.contains(name));
  for (const auto& [key, item] : links_) item->setMarked(selected.contains(key));
}

void CanvasScene::preview(const Items& items, QPointF offset) {
  for (const std::string& name : items) {
    const auto at = layout_.find(name);
    if (BoxItem* item = box(name); item != nullptr && at != layout_.end())
      item->moveTo(QPointF(at->second.x, at->second.y) + offset);
  }
}

BoxItem* CanvasScene::box(const std::string& name) const {
  const auto found = boxes_.find(name);
  return found == boxes_.end() ? nullptr : found->second;
}

LinkItem* CanvasScene::link(const std::string& key) const {
  const auto found = links_.find(key);
  return found == links_.end() ? nullptr : found->second;
}

Items CanvasScene::itemsIn(const QRectF& area) const {
  Items items;
  for (const auto& [name, item] : boxes_) {
    if (QRectF(item->pos(), item->size()).intersects(area)) items.insert(name);
  }
  for (const auto& [key, item] : links_) {
    if (items.contains(item->first.name) && items.contains(item->second.name)) items.insert(key);
  }
  return items;
}

QRectF CanvasScene::boundsOf(const Items& items) const {
  QRectF bounds;
  for (const auto& [name, item] : boxes_) {
    if (items.empty() || items.contains(name)) bounds |= QRectF(item->pos(), item->size());
  }
  return bounds;
}

std::string CanvasScene::nameOf(const QGraphicsItem* item) {
  if (const auto* boxItem = dynamic_cast<const BoxItem*>(item)) return boxItem->name;
  if (const auto* linkItem = dynamic_cast<const LinkItem*>(item)) return linkItem->key;
  return {};
}

}  // namespace evenkeel::gui
