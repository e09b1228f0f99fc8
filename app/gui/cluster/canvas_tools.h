// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointF>
#include <QRectF>
#include <Qt>
#include <string>

#include "app/gui/cluster/cluster_edits.h"

class QPainter;
class QPalette;

namespace evenkeel::gui {

class CanvasScene;
class Workspace;

/// Where the pointer is and what lies under it.
struct CanvasPointer {
  QPointF at;        // in the scene
  std::string item;  // machine, switch or connection under it; empty: none
  Qt::KeyboardModifiers modifiers;
};

/// What the left button does on the canvas. A tool changes the document only when a gesture ends; until then it previews.
class CanvasTool {
 public:
  CanvasTool(Workspace& workspace, CanvasScene& scene) : workspace_(workspace), scene_(scene) {}
  virtual ~CanvasTool() = default;
  virtual void press(const CanvasPointer& pointer) = 0;
  /// The pointer's item is not known while it moves.
  virtual void move(const CanvasPointer& pointer, bool isDown) = 0;
  virtual void release(const CanvasPointer& pointer) = 0;
  /// Takes back the gesture that is going on; false if there was none.
  virtual bool cancel() = 0;
  /// Above everything, in scene coordinates.
  virtual void paint(QPainter& painter, const QPalette& palette) const = 0;

 protected:
  Workspace& workspace_;
  CanvasScene& scene_;
};

/// Selects by click and rubber band, and drags what is selected along the grid.
class SelectTool final : public CanvasTool {
 public:
  using CanvasTool::CanvasTool;
  void press(const CanvasPointer& pointer) override;
  void move(const CanvasPointer& pointer, bool isDown) override;
  void release(const CanvasPointer& pointer) override;
  bool cancel() override;
  void paint(QPainter& painter, const QPalette& palette) const override;

 private:
  enum class Gesture { None, Press, Drag, Band };
  Gesture gesture_ = Gesture::None;
  QPointF from_, offset_;
  std::string grabbed_;  // the box under the press; it snaps to the grid, the others keep their distances to it
  Items before_;         // selection at the press
  QRectF band_;
};

/// Links two boxes: click the first, click the second; or drag from one to the other.
class LinkTool final : public CanvasTool {
 public:
  using CanvasTool::CanvasTool;
  void press(const CanvasPointer& pointer) override;
  void move(const CanvasPointer& pointer, bool isDown) override;
  void release(const CanvasPointer& pointer) override;
  bool cancel() override;
  void paint(QPainter& painter, const QPalette& palette) const override;

 private:
  void finish(const std::string& second);
  std::string first_;
  QPointF at_;
};

}  // namespace evenkeel::gui
