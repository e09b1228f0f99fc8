// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/canvas_scene.h"

#include <QPainter>
#include <algorithm>
#include <cassert>
#include <cmath>

#include "app/gui/cluster/cluster_text.h"
#include "app/gui/cluster/device_edits.h"
#include "app/gui/theme/theme.h"

namespace evenkeel::gui {
namespace {

constexpr double kMargin = 20'000;  // canvas around the drawing that one can move to

constexpr double kPortWidth = 1.5;
constexpr double kEdge = 8;  // of a block in the overview, canvas units

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
  made->setFlag(QGraphicsItem::ItemHasNoContents, isOverview_);
  addItem(made);
  return *made;
}

void CanvasScene::show(const Project& project) {
  layout_ = shownLayout(project);
  bool isChanged = project.cluster != shown_;
  if (isChanged) {  // else something has only been moved
    showBoxes(project.cluster);
    showLinks(project.cluster);
    shown_ = project.cluster;
  }
  auto place = layout_.begin();  // of the same names in the same order
  for (const auto& [name, item] : boxes_) {
    assert(place != layout_.end() && place->first == name);
    isChanged |= item->moveTo({place->second.x, place->second.y});
    ++place;
  }
  setSceneRect(boundsOf({}).adjusted(-kMargin, -kMargin, kMargin, kMargin));
  if (isOverview_ && isChanged) update();  // at the end of a drag all is where it was dragged to
}

void CanvasScene::showBoxes(const Cluster& cluster) {
  std::vector<BoxItem*> gone;
  for (const auto& [name, item] : boxes_) {
    if (!layout_.contains(name)) gone.push_back(item);
  }
  for (BoxItem* item : gone) removeBox(item);
  for (const Node& node : cluster.nodes) boxFor<MachineItem>(node.name).setContent(contentOf(cluster, node));
  for (const Switch& s : cluster.switches)
    boxFor<SwitchItem>(s.name).setDetail(tr("%1 GB/s a port").arg(numberText(gbs(s.bandwidth))));
}

void CanvasScene::showLinks(const Cluster& cluster) {
  std::vector<const LinkItem*> kept;
  kept.reserve(links_.size());
  QString label;  // most links are like the one before
  BytesPerSecond labelled{};
  for (const Link& link : cluster.links) {
    const std::string& a = cluster.nodes[static_cast<std::size_t>(link.first)].name;
    const std::string& b = cluster.nodes[static_cast<std::size_t>(link.second)].name;
    if (label.isEmpty() || labelled != link.spec.bandwidth) label = tr("%1 GB/s").arg(numberText(gbs(link.spec.bandwidth)));
    labelled = link.spec.bandwidth;
    kept.push_back(showLink(a, b, label, widthOf(link.spec.bandwidth)));
  }
  for (const Switch& s : cluster.switches) {
    for (const std::string& member : s.members) {
      kept.push_back(showLink(s.name, member, {}, kPortWidth));
    }
  }
  std::ranges::sort(kept);
  std::vector<LinkItem*> cut;
  for (const auto& [key, item] : links_) {
    if (!std::ranges::binary_search(kept, item)) cut.push_back(item);
  }
  for (LinkItem* item : cut) removeLink(item);
}

void CanvasScene::setOverview(bool isOverview) {
  if (isOverview == isOverview_) return;
  isOverview_ = isOverview;
  for (const auto& [name, item] : boxes_) item->setFlag(QGraphicsItem::ItemHasNoContents, isOverview);
  for (const auto& [key, item] : links_) item->setFlag(QGraphicsItem::ItemHasNoContents, isOverview);
  update();
}

void CanvasScene::paintOverview(QPainter& painter, const QPalette& palette) const {
  QList<QLineF> plain, marked;
  plain.reserve(static_cast<qsizetype>(links_.size()));
  for (const auto& [key, item] : links_) (item->isMarked() ? marked : plain).push_back(item->line());
  painter.setRenderHint(QPainter::Antialiasing, false);
  for (const auto& [lines, colour] : {std::pair{&plain, colours(palette).link}, {&marked, colours(palette).accent}}) {
    QPen pen(colour, 0);
    pen.setCosmetic(true);
    painter.setPen(pen);
    painter.drawLines(*lines);
  }
  std::map<QRgb, QList<QRectF>> edges, insides;  // of few colours
  for (const auto& [name, item] : boxes_) {
    const BoxItem::Block block = item->block(palette);
    const QRectF area(item->pos(), item->size());
    edges[block.edge.rgb()].push_back(area);
    if (block.inside != block.edge) insides[block.inside.rgb()].push_back(area.adjusted(kEdge, kEdge, -kEdge, -kEdge));
  }
  painter.setPen(Qt::NoPen);
  for (const auto* layer : {&edges, &insides}) {
    for (const auto& [colour, areas] : *layer) {
      painter.setBrush(QColor(colour));
      painter.drawRects(areas);
    }
  }
}

LinkItem* CanvasScene::showLink(const std::string& first, const std::string& second, const QString& label, double width) {
  BoxItem* a = box(first);
  BoxItem* b = box(second);
  if (a == nullptr || b == nullptr || a == b) return nullptr;
  const std::string key = connectionKey(first, second);
  LinkItem*& item = links_[key];
  if (item == nullptr) {
    item = new LinkItem(key, *a, *b);
    item->setFlag(QGraphicsItem::ItemHasNoContents, isOverview_);
    addItem(item);
  }
  item->setContent(label, width);
  return item;
}

void CanvasScene::mark(const Items& selected) {
  bool isChanged = false;
  for (const auto& [name, item] : boxes_) isChanged |= item->setMarked(selected.contains(name));
  for (const auto& [key, item] : links_) isChanged |= item->setMarked(selected.contains(key));
  if (isOverview_ && isChanged) update();
}

void CanvasScene::preview(const Items& items, QPointF offset) {
  for (const std::string& name : items) {
    const auto at = layout_.find(name);
    if (BoxItem* item = box(name); item != nullptr && at != layout_.end())
      item->moveTo(QPointF(at->second.x, at->second.y) + offset);
  }
  if (isOverview_) update();
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
