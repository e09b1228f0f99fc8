// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QMenu>
#include <QObject>

#include "app/gui/cluster/canvas.h"
#include "app/gui/cluster/device_edits.h"

namespace evenkeel::gui {

/// Everything that menu, tool bar and keys of the cluster page do, each one undo step. Single letters act only while the canvas
/// has the focus.
class ClusterActions final : public QObject {
  Q_OBJECT

 public:
  ClusterActions(Workspace& workspace, Canvas& canvas, QObject* parent = nullptr);

  QAction* newMachine = nullptr;
  QAction* newSwitch = nullptr;
  QAction* linkTool = nullptr;
  QAction* findMachines = nullptr;
  QAction* duplicate = nullptr;
  QAction* remove = nullptr;
  QAction* copy = nullptr;
  QAction* cut = nullptr;
  QAction* paste = nullptr;
  QAction* selectAll = nullptr;
  QAction* rename = nullptr;
  QAction* arrange = nullptr;
  QAction* fit = nullptr;
  QAction* fullSize = nullptr;
  QAction* zoomIn = nullptr;
  QAction* zoomOut = nullptr;

 signals:
  /// Somebody wants to look for machines instead of drawing them.
  void findMachinesRequested();

 public:
  /// What newMachine adds.
  void setMachine(DeviceGroup machine);
  [[nodiscard]] const DeviceGroup& machine() const { return machine_; }

  /// Puts a text on the canvas with its middle at `at`, or near it: "switch", devices as in "8 x A100-80-SXM", a shorthand or
  /// copied machines. What cannot be read is a message.
  void insertText(const QString& text, CanvasPoint at);
  /// The tools for what lies under the pointer: the selection, or the empty canvas.
  void fillMenu(QMenu& menu) const;
  void refreshIcons(const QPalette& palette);

 private:
  QAction* add(const QString& name, const QString& text, std::initializer_list<QKeySequence> keys,
               const std::function<void()>& run);
  /// One undo step; what it gives is selected, an error is shown.
  void edit(const QString& text, const std::function<Result<Items>(Project&)>& change);
  void copySelection();
  void removeSelection(const QString& text);
  void refresh();

  Workspace& workspace_;
  Canvas& canvas_;
  DeviceGroup machine_{"A100-80-SXM", 8};
};

}  // namespace evenkeel::gui
