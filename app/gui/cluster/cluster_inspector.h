// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QScrollArea>

#include "app/gui/window/page.h"

class QLabel;

namespace evenkeel::gui {

class MachineForm;
class ConnectionForm;
class SwitchForm;

/// What is selected, as fields: a form for the machines, one for the links, one for the switches. A field writes to all of its
/// kind that are selected, as one undo step.
class ClusterInspector final : public QScrollArea {
  Q_OBJECT

 public:
  explicit ClusterInspector(Workspace& workspace, QWidget* parent = nullptr);

 private:
  void refresh();
  Workspace& workspace_;
  QLabel* title_;
  QLabel* hint_;
  MachineForm* machines_;
  ConnectionForm* connections_;
  SwitchForm* switches_;
};

}  // namespace evenkeel::gui
