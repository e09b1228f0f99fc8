// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QToolBar>
#include <map>

#include "app/gui/window/page.h"

namespace evenkeel::gui {

/// The modes at the left edge: Start, Cluster, Model, Plan, Compare, Run; Ctrl+1 to Ctrl+5 for all but Start (Ctrl+0 belongs to zoom).
class ModeBar final : public QToolBar {
  Q_OBJECT

 public:
  explicit ModeBar(QWidget* parent = nullptr);
  [[nodiscard]] Mode mode() const { return mode_; }
  void setMode(Mode mode);
  /// A mode that cannot be entered is grey, and its tool tip says what is missing.
  void setMissing(Mode mode, const QString& missing);
  [[nodiscard]] QAction* actionOf(Mode mode) const { return actions_.at(mode); }

 signals:
  void modeChosen(evenkeel::gui::Mode mode);

 private:
  void changeEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void refreshIcons();
  std::map<Mode, QAction*> actions_;
  Mode mode_ = Mode::Start;
};

[[nodiscard]] QString titleOf(Mode mode);

}  // namespace evenkeel::gui
