// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/canvas.h"

#include <QDragEnterEvent>
#include <QKeyEvent>
#include <QMimeData>
#include <QPainter>
#include <QScrollBar>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "app/gui/cluster/cluster_text.h"
#include "app/gui/theme/theme.h"

namespace evenkeel::gui {
namespace {

constexpr double kSmallestZoom = 0.05, kLargestZoom = 4;
constexpr double kWheelStep = 1.2;  // a notch
constexpr int kFitMargin = 60;
constexpr double kWideGridZoom = 0.75;  // below: only each fifth point of the grid

}  // namespace

Canvas::Canvas(Workspace& workspace, QWidget* parent)
    : QGraphicsView(parent),
      workspace_(workspace),
      selectTool_(std::make_unique<SelectTool>(workspace, scene_)),
      linkTool_(std::make_unique<LinkTool>(workspace, scene_)) {
  setObjectName(QStringLiteral("clusterCanvas"));
  setAccessibleName(tr("Drawing of the cluster; the outline lists the same"));
  setScene(&scene_);
  setAcceptDrops(true);
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setTransformationAnchor(NoAnchor);
  setViewportUpdateMode(SmartViewportUpdate);
  setOptimizationFlags(DontAdjustForAntialiasing | DontSavePainterState);  // each item sets all that it uses
  setFocusPolicy(Qt::StrongFocus);
  viewport()->setMouseTracking(true);
  connect(&workspace_.document, &ProjectDocument::changed, this, &Canvas::refresh);
  connect(&workspace_.document, &ProjectDocument::pathChanged, this, [this] { needsFit_ = true; });
  connect(&workspace_.selection, &Selection::changed, this, [this] { scene_.mark(workspace_.selection.items()); });
  refresh(Part::Cluster);
}

Canvas::~Canvas() { setScene(nullptr); }

void Canvas::refresh(Parts parts) {
  if (!(parts & (Parts(Part::Cluster) | Part::Layout))) return;
  const bool wasEmpty = scene_.boxes().empty();
  scene_.show(workspace_.document.project());
  scene_.mark(workspace_.selection.items());
  if (wasEmpty && scene_.boxes().size() > 1) needsFit_ = true;  // one alone stays where it was dropped
  if (needsFit_ && isVisible() && !scene_.boxes().empty()) fit();
}

void Canvas::showEvent(QShowEvent* event) {
  QGraphicsView::showEvent(event);
  if (needsFit_) fit();
}

void Canvas::resizeEvent(QResizeEvent* event) {
  const QPointF middle = mapToScene(QRect(QPoint(), event->oldSize()).center());
  QGraphicsView::resizeEvent(event);
  if (event->oldSize().isValid()) centerOn(middle);
}

void Canvas::setTool(Tool tool) {
  if (tool == tool_) return;
  current().cancel();
  tool_ = tool;
  updateCursor();
  emit toolChanged(tool);
}

CanvasTool& Canvas::current() { return tool_ == Tool::Select ? *selectTool_ : *linkTool_; }

void Canvas::updateCursor() {
  viewport()->setCursor(isPanning_            ? Qt::ClosedHandCursor
                        : isSpaceDown_        ? Qt::OpenHandCursor
                        : tool_ == Tool::Link ? Qt::CrossCursor
                                              : Qt::ArrowCursor);
}

void Canvas::zoomTo(double zoom, QPoint anchor) {
  const QPointF kept = mapToScene(anchor);
  const double scale = std::clamp(zoom, kSmallestZoom, kLargestZoom);
  setTransform(QTransform::fromScale(scale, scale));
  scene_.setOverview(scale < kTextZoom);
  const QPointF now = mapFromScene(kept);
  horizontalScrollBar()->setValue(horizontalScrollBar()->value() + qRound(now.x() - anchor.x()));
  verticalScrollBar()->setValue(verticalScrollBar()->value() + qRound(now.y() - anchor.y()));
  emit zoomChanged(scale);
}

void Canvas::zoomBy(double factor) { zoomTo(zoom() * factor, viewport()->rect().center()); }

void Canvas::fit() {
  QRectF bounds = scene_.boundsOf(workspace_.selection.items());
  if (bounds.isEmpty()) bounds = scene_.boundsOf({});
  needsFit_ = false;
  const QSizeF room(std::max(1, viewport()->width() - kFitMargin), std::max(1, viewport()->height() - kFitMargin));
  const double scale = bounds.isEmpty() ? 1 : std::min({1.0, room.width() / bounds.width(), room.height() / bounds.height()});
  zoomTo(scale, viewport()->rect().center());
  centerOn(bounds.center());
}

CanvasPoint Canvas::insertionPoint() const {
  const QPointF middle = mapToScene(viewport()->rect().center());
  return {middle.x(), middle.y()};
}

void Canvas::paintEvent(QPaintEvent* event) {
  if (!scene_.isOverview()) return QGraphicsView::paintEvent(event);
  // The items have no contents then; to look them up would take a third of the frame.
  QPainter painter(viewport());
  painter.setClipRegion(event->region());
  painter.setTransform(viewportTransform());
  const QRectF area = mapToScene(event->rect()).boundingRect();
  drawBackground(&painter, area);
  drawForeground(&painter, area);
}

void Canvas::drawBackground(QPainter* painter, const QRectF& area) {
  const Colours& c = colours(palette());
  painter->fillRect(area, c.canvas);
  if (scene_.isOverview()) scene_.paintOverview(*painter, palette());
  if (zoom() < kGridZoom) return;
  const double step = zoom() < kWideGridZoom ? 5 * kGrid : kGrid;
  QList<QPointF> points;
  for (double x = std::floor(area.left() / step) * step; x <= area.right(); x += step) {
    for (double y = std::floor(area.top() / step) * step; y <= area.bottom(); y += step) points.push_back({x, y});
  }
  QPen pen(c.grid, 2);
  pen.setCosmetic(true);
  painter->setRenderHint(QPainter::Antialiasing, false);
  painter->setPen(pen);
  painter->drawPoints(points.constData(), static_cast<int>(points.size()));
}

void Canvas::drawForeground(QPainter* painter, const QRectF&) { current().paint(*painter, palette()); }

CanvasPointer Canvas::pointerAt(QPoint position, Qt::KeyboardModifiers modifiers) const {
  return {mapToScene(position), CanvasScene::nameOf(itemAt(position)), modifiers};
}

void Canvas::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::MiddleButton || (event->button() == Qt::LeftButton && isSpaceDown_)) {
    isPanning_ = true;
    panFrom_ = event->pos();
    updateCursor();
  } else if (event->button() == Qt::LeftButton) {
    isToolDown_ = true;
    current().press(pointerAt(event->pos(), event->modifiers()));
  } else if (event->button() == Qt::RightButton) {
    const std::string item = CanvasScene::nameOf(itemAt(event->pos()));  // the menu is about what lies under it
    if (!item.empty() && !workspace_.selection.contains(item)) workspace_.selection.setItems({item});
  }
  event->accept();
}

void Canvas::mouseMoveEvent(QMouseEvent* event) {
  if (isPanning_) {
    const QPoint moved = event->pos() - panFrom_;
    panFrom_ = event->pos();
    horizontalScrollBar()->setValue(horizontalScrollBar()->value() - moved.x());
    verticalScrollBar()->setValue(verticalScrollBar()->value() - moved.y());
  } else if (isToolDown_) {
    current().move({mapToScene(event->pos()), {}, event->modifiers()}, true);  // what lies under it is not asked: that takes time
  } else {
    current().move({mapToScene(event->pos()), {}, event->modifiers()}, false);
  }
}

void Canvas::mouseReleaseEvent(QMouseEvent* event) {
  if (isPanning_ && event->button() != Qt::RightButton) {
    isPanning_ = false;
    updateCursor();
  } else if (event->button() == Qt::LeftButton && std::exchange(isToolDown_, false)) {
    current().release(pointerAt(event->pos(), event->modifiers()));
  }
}

void Canvas::mouseDoubleClickEvent(QMouseEvent* event) {
  const std::string item = CanvasScene::nameOf(itemAt(event->pos()));
  if (event->button() == Qt::LeftButton && tool_ == Tool::Select && scene_.box(item) != nullptr) beginRename(item);
  else mousePressEvent(event);
}

void Canvas::wheelEvent(QWheelEvent* event) {
  const QPoint turned = event->angleDelta();
  if (event->modifiers() & Qt::ControlModifier) {
    zoomTo(zoom() * std::pow(kWheelStep, turned.y() / 120.0), event->position().toPoint());
  } else {
    const bool sideways = (event->modifiers() & Qt::ShiftModifier) != 0;
    const QPoint by = sideways ? QPoint(turned.y(), turned.x()) : turned;
    horizontalScrollBar()->setValue(horizontalScrollBar()->value() - by.x());
    verticalScrollBar()->setValue(verticalScrollBar()->value() - by.y());
  }
  event->accept();
}

void Canvas::nudge(int dx, int dy) {
  const Items items = workspace_.selection.items();
  workspace_.document.edit(
      tr("Move"), [&](Project& project) { moveItems(project, items, dx * kGrid, dy * kGrid); },
      QStringLiteral("nudge %1").arg(gesture_));
}

void Canvas::keyPressEvent(QKeyEvent* event) {
  const int steps = event->modifiers() & Qt::ShiftModifier ? 10 : 1;
  if (!event->isAutoRepeat()) ++gesture_;
  switch (event->key()) {
    case Qt::Key_Left: return nudge(-steps, 0);
    case Qt::Key_Right: return nudge(steps, 0);
    case Qt::Key_Up: return nudge(0, -steps);
    case Qt::Key_Down: return nudge(0, steps);
    case Qt::Key_Space:
      if (!event->isAutoRepeat()) isSpaceDown_ = true;
      return updateCursor();
    case Qt::Key_Escape:
      if (current().cancel()) isToolDown_ = false;
      else if (tool_ == Tool::Link) setTool(Tool::Select);
      else workspace_.selection.clear();
      return;
    default: QGraphicsView::keyPressEvent(event);
  }
}

void Canvas::keyReleaseEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Space && !event->isAutoRepeat()) {
    isSpaceDown_ = false;
    updateCursor();
  }
  QGraphicsView::keyReleaseEvent(event);
}

void Canvas::focusOutEvent(QFocusEvent* event) {
  isSpaceDown_ = false;
  updateCursor();
  QGraphicsView::focusOutEvent(event);
}

void Canvas::beginRename(const std::string& name) {
  const BoxItem* box = scene_.box(name);
  if (box == nullptr) return;
  delete nameEdit_;
  const QRect area = mapFromScene(QRectF(box->pos(), box->size())).boundingRect();
  nameEdit_ = new QLineEdit(text(name), viewport());
  nameEdit_->setObjectName(QStringLiteral("nameEdit"));
  nameEdit_->setAccessibleName(tr("Name"));
  nameEdit_->setGeometry(area.x(), area.y(), std::max(140, area.width()), nameEdit_->sizeHint().height());
  nameEdit_->selectAll();
  nameEdit_->show();
  nameEdit_->setFocus();
  connect(nameEdit_, &QLineEdit::editingFinished, this, [this, name, edit = nameEdit_.data()] {
    if (nameEdit_ != edit) return;  // finished already: losing the focus while closing says it again
    nameEdit_ = nullptr;
    edit->deleteLater();
    setFocus();
    const std::string to = edit->text().trimmed().toStdString();
    bool renamed = false;
    workspace_.document.edit(tr("Rename %1").arg(text(name)), [&](Project& project) {
      auto result = rename(project, name, to);
      renamed = result.ok();
      if (!result) workspace_.messages.showError(result.error());
    });
    if (renamed) workspace_.selection.setItems({to});
  });
  auto* leave = new QAction(nameEdit_);
  leave->setShortcut(QKeySequence(Qt::Key_Escape));
  leave->setShortcutContext(Qt::WidgetShortcut);
  nameEdit_->addAction(leave);
  connect(leave, &QAction::triggered, nameEdit_, [edit = nameEdit_.data(), name] {
    edit->setText(text(name));
    edit->clearFocus();
  });
}

bool Canvas::takes(const QMimeData& dragged) {
  return dragged.hasFormat(kMachineMime) || (dragged.hasText() && !dragged.hasUrls());  // files are the window's to open
}

void Canvas::take(const QMimeData& dragged, QPoint position) {
  const QPointF at = mapToScene(position);
  setFocus();
  const bool isOurs = dragged.hasFormat(kMachineMime);
  emit dropped(isOurs ? QString::fromUtf8(dragged.data(kMachineMime)) : dragged.text(), {at.x(), at.y()});
}

void Canvas::dragEnterEvent(QDragEnterEvent* event) {
  if (takes(*event->mimeData())) event->acceptProposedAction();
}

void Canvas::dragMoveEvent(QDragMoveEvent* event) {
  if (takes(*event->mimeData())) event->acceptProposedAction();
}

void Canvas::dragLeaveEvent(QDragLeaveEvent* event) { event->accept(); }  // the scene has not heard of the drag

void Canvas::dropEvent(QDropEvent* event) {
  if (!takes(*event->mimeData())) return;
  event->acceptProposedAction();
  take(*event->mimeData(), event->position().toPoint());
}

}  // namespace evenkeel::gui
