// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "app/gui/cluster/cluster_edits.h"
#include "app/gui/window/page.h"

namespace evenkeel::gui {

class NumberField;
class TextField;

/// Bandwidth and latency of the selected links.
class ConnectionForm final : public QWidget {
  Q_OBJECT

 public:
  explicit ConnectionForm(Workspace& workspace, QWidget* parent = nullptr);
  /// How many links are among the items; hides itself if there are none.
  int show(const Items& items);

 private:
  Workspace& workspace_;
  Items items_;
  NumberField* bandwidth_;
  NumberField* latency_;
};

/// Name, bandwidths and latency of the selected switches.
class SwitchForm final : public QWidget {
  Q_OBJECT

 public:
  explicit SwitchForm(Workspace& workspace, QWidget* parent = nullptr);
  int show(const Items& items);

 private:
  Workspace& workspace_;
  Items items_;
  TextField* name_;
  NumberField* bandwidth_;
  NumberField* total_;
  NumberField* latency_;
};

}  // namespace evenkeel::gui
