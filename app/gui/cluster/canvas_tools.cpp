// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/canvas_tools.h"

#include <QApplication>
#include <QPainter>
#include <algorithm>

#include "app/gui/cluster/canvas_scene.h"
#include "app/gui/theme/theme.h"
#include "app/gui/window/page.h"

namespace evenkeel::gui {

void SelectTool::press(const CanvasPointer& pointer) {
  from_ = pointer.at;
  offset_ = {};
  band_ = {};
  before_ = workspace_.selection.items();
  grabbed_.clear();
  const bool adds = (pointer.modifiers & (Qt::ShiftModifier | Qt::ControlModifier)) != 0;
  if (pointer.item.empty()) {
    gesture_ = Gesture::Band;
    if (!adds) {
      before_.clear();
      workspace_.selection.clear();
    }
    return;
  }
  gesture_ = Gesture::Press;
  Items items = before_;
  if (adds) {
    if (!items.erase(pointer.item)) items.insert(pointer.item);
  } else if (!items.contains(pointer.item)) {
    items = {pointer.item};
  }
  workspace_.selection.setItems(items);
  if (items.contains(pointer.item) && scene_.box(pointer.item) != nullptr) grabbed_ = pointer.item;
}

void SelectTool::move(const CanvasPointer& pointer, bool isDown) {
  if (!isDown || gesture_ == Gesture::None) return;
  if (gesture_ == Gesture::Band) {
    band_ = QRectF(from_, pointer.at).normalized();
    Items items = before_;
    items.merge(scene_.itemsIn(band_));
    workspace_.selection.setItems(std::move(items));
    scene_.update();
    return;
  }
  const QPointF moved = pointer.at - from_;
  if (gesture_ == Gesture::Press && moved.manhattanLength() < QApplication::startDragDistance() / 2.0) return;
  const BoxItem* box = scene_.box(grabbed_);
  if (box == nullptr) return;
  gesture_ = Gesture::Drag;
  const QPointF home = box->pos() - offset_;
  const CanvasPoint to = snapped({home.x() + moved.x(), home.y() + moved.y()});
  const QPointF offset(to.x - home.x(), to.y - home.y());
  if (offset == offset_) return;
  offset_ = offset;
  scene_.preview(workspace_.selection.items(), offset_);
}

void SelectTool::release(const CanvasPointer& pointer) {
  const Gesture ended = std::exchange(gesture_, Gesture::None);
  if (ended == Gesture::Drag) {
    const Items items = workspace_.selection.items();
    if (!offset_.isNull()) {
      workspace_.document.edit(CanvasScene::tr("Move"),
                               [&](Project& project) { moveItems(project, items, offset_.x(), offset_.y()); });
    }
  } else if (ended == Gesture::Press && (pointer.modifiers & (Qt::ShiftModifier | Qt::ControlModifier)) == 0 &&
             !pointer.item.empty()) {
    workspace_.selection.setItems({pointer.item});  // a click inside a selection of many picks one
  }
  if (ended == Gesture::Band) scene_.update();
  band_ = {};
}

bool SelectTool::cancel() {
  if (gesture_ == Gesture::None) return false;
  if (gesture_ == Gesture::Drag) scene_.preview(workspace_.selection.items(), {});
  gesture_ = Gesture::None;
  band_ = {};
  scene_.update();
  return true;
}

void SelectTool::paint(QPainter& painter, const QPalette& palette) const {
  if (gesture_ != Gesture::Band || band_.isEmpty()) return;
  QColor fill = colours(palette).accent;
  QPen pen(fill, 1);
  pen.setCosmetic(true);
  fill.setAlpha(30);
  painter.setPen(pen);
  painter.setBrush(fill);
  painter.drawRect(band_);
}

void LinkTool::press(const CanvasPointer& pointer) {
  at_ = pointer.at;
  const bool isBox = scene_.box(pointer.item) != nullptr;
  if (first_.empty()) first_ = isBox ? pointer.item : std::string();
  else if (isBox && pointer.item != first_) finish(pointer.item);
  else first_.clear();
  scene_.update();
}

void LinkTool::move(const CanvasPointer& pointer, bool) {
  at_ = pointer.at;
  if (!first_.empty()) scene_.update();
}

void LinkTool::release(const CanvasPointer& pointer) {
  if (!first_.empty() && pointer.item != first_ && scene_.box(pointer.item) != nullptr) finish(pointer.item);
}

bool LinkTool::cancel() {
  if (first_.empty()) return false;
  first_.clear();
  scene_.update();
  return true;
}

void LinkTool::finish(const std::string& second) {
  const std::string first = std::exchange(first_, {});
  std::string key;
  workspace_.document.edit(CanvasScene::tr("Link %1 and %2").arg(QString::fromStdString(first), QString::fromStdString(second)),
                           [&](Project& project) {
                             auto connected = connectItems(project, first, second);
                             if (connected) key = *connected;
                             else workspace_.messages.showError(connected.error());
                           });
  if (!key.empty()) workspace_.selection.setItems({key});
}

void LinkTool::paint(QPainter& painter, const QPalette& palette) const {
  const BoxItem* box = scene_.box(first_);
  if (box == nullptr) return;
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(colours(palette).accent, 2, Qt::DashLine));
  painter.drawLine(box->centre(), at_);
  painter.setBrush(Qt::NoBrush);
  painter.drawRoundedRect(QRectF(box->pos(), box->size()).adjusted(-3, -3, 3, 3), 7, 7);
}

}  // namespace evenkeel::gui
