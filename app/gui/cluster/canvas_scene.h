// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QGraphicsScene>
#include <map>
#include <memory>
#include <string>

#include "app/gui/cluster/canvas_items.h"
#include "app/gui/cluster/cluster_edits.h"

namespace evenkeel::gui {

/// The drawing of a project: one item a machine, switch and connection. It shows the project and never holds the truth;
/// show() makes it equal to the project again, whatever a gesture has moved meanwhile.
class CanvasScene final : public QGraphicsScene {
  Q_OBJECT

 public:
  using QGraphicsScene::QGraphicsScene;

  /// O(machines + connections); items that stay are updated, not made anew.
  void show(const Project& project);
  void mark(const Items& selected);

  /// Whether the view is so far away that it calls paintOverview() instead of having each item painted: of 3000 items most of a frame
  /// goes into asking one after the other. They can be clicked all the same.
  void setOverview(bool isOverview);
  [[nodiscard]] bool isOverview() const { return isOverview_; }
  /// All links as thin lines, below all boxes as blocks. O(items).
  void paintOverview(QPainter& painter, const QPalette& palette) const;

  /// Moves boxes away from where the project has them, for the time of a gesture.
  void preview(const Items& items, QPointF offset);

  [[nodiscard]] const std::map<std::string, BoxItem*>& boxes() const { return boxes_; }
  [[nodiscard]] BoxItem* box(const std::string& name) const;
  [[nodiscard]] LinkItem* link(const std::string& key) const;
  /// Machines and switches that the rectangle touches, and connections with both ends among them.
  [[nodiscard]] Items itemsIn(const QRectF& area) const;
  /// Bounds of all boxes, or of those named; empty if there are none.
  [[nodiscard]] QRectF boundsOf(const Items& items) const;
  /// The name or key of an item of this scene; empty for others.
  [[nodiscard]] static std::string nameOf(const QGraphicsItem* item);

 private:
  template <class Item>
  Item& boxFor(const std::string& name);
  void removeLink(LinkItem* link);
  void removeBox(BoxItem* box);
  void showBoxes(const Cluster& cluster);
  void showLinks(const Cluster& cluster);
  /// Null where an end is missing.
  LinkItem* showLink(const std::string& first, const std::string& second, const QString& label, double width);

  std::map<std::string, BoxItem*> boxes_;
  std::map<std::string, LinkItem*> links_;
  Places layout_;
  Cluster shown_;
  bool isOverview_ = false;
};

}  // namespace evenkeel::gui
