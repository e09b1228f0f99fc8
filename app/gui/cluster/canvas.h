// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QGraphicsView>
#include <QLineEdit>
#include <QPointer>
#include <memory>

#include "app/gui/cluster/canvas_scene.h"
#include "app/gui/cluster/canvas_tools.h"
#include "app/gui/window/page.h"

class QMimeData;

namespace evenkeel::gui {

/// The drawing with what a hand does to it: zoom at the cursor, pan, tools, drop, rename in place. It shows the document of its
/// workspace and changes it only through edit().
class Canvas final : public QGraphicsView {
  Q_OBJECT

 public:
  enum class Tool { Select, Link };

  explicit Canvas(Workspace& workspace, QWidget* parent = nullptr);
  ~Canvas() override;

  [[nodiscard]] CanvasScene& drawing() { return scene_; }
  [[nodiscard]] Tool tool() const { return tool_; }
  void setTool(Tool tool);

  [[nodiscard]] double zoom() const { return transform().m11(); }
  /// Keeps the scene point under `anchor` (in the viewport) where it is. Clamped to what can be read or found.
  void zoomTo(double zoom, QPoint anchor);
  void zoomBy(double factor);
  /// All that is selected, else everything; never larger than 100 %.
  void fit();
  /// Where a machine that is added without a pointer should go: the middle of what is seen.
  [[nodiscard]] CanvasPoint insertionPoint() const;
  /// Whether a thing that is dragged can be put here, and puts it: what the palette gives, or text of another program.
  [[nodiscard]] static bool takes(const QMimeData& dragged);
  void take(const QMimeData& dragged, QPoint position);
  /// Opens a line edit over a machine or switch.
  void beginRename(const std::string& name);

 signals:
  void zoomChanged(double zoom);
  void toolChanged(evenkeel::gui::Canvas::Tool tool);
  /// A text that was dropped, to be put with its middle at `at`.
  void dropped(const QString& text, evenkeel::CanvasPoint at);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void drawBackground(QPainter* painter, const QRectF& area) override;
  void drawForeground(QPainter* painter, const QRectF& area) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void keyReleaseEvent(QKeyEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dragMoveEvent(QDragMoveEvent* event) override;
  void dragLeaveEvent(QDragLeaveEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void refresh(Parts parts);
  void nudge(int dx, int dy);
  void updateCursor();
  [[nodiscard]] CanvasPointer pointerAt(QPoint position, Qt::KeyboardModifiers modifiers) const;
  [[nodiscard]] CanvasTool& current();

  Workspace& workspace_;
  CanvasScene scene_;
  Tool tool_ = Tool::Select;
  std::unique_ptr<CanvasTool> selectTool_, linkTool_;
  QPointer<QLineEdit> nameEdit_;
  QPoint panFrom_;
  int gesture_ = 0;  // numbers held arrow keys, so that each is one undo step
  bool isPanning_ = false, isSpaceDown_ = false, isToolDown_ = false, needsFit_ = true;
};

inline const QString kMachineMime = QStringLiteral("application/x-evenkeel-machine");

}  // namespace evenkeel::gui
