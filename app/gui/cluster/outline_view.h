// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTreeView>

#include "app/gui/cluster/outline_model.h"
#include "app/gui/window/page.h"

namespace evenkeel::gui {

/// The outline: shares its selection with the canvas; Del removes, F2 renames.
class OutlineView final : public QTreeView {
  Q_OBJECT

 public:
  explicit OutlineView(Workspace& workspace, QWidget* parent = nullptr);

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void takeSelection();   // from the workspace
  void shareSelection();  // to the workspace
  Workspace& workspace_;
  OutlineModel model_;
  bool isTaking_ = false;
};

}  // namespace evenkeel::gui
