// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/gui/window/page.h"

class QVBoxLayout;

namespace evenkeel::gui {

/// Without a document: new, open, recent files, and what a crash left.
class StartPage final : public Page {
  Q_OBJECT

 public:
  StartPage(Workspace& workspace, std::function<void(const QString&)> openFile, QWidget* parent = nullptr);

 private:
  void showEvent(QShowEvent* event) override;
  void fill();
  void addRecovered();
  void addRecent();

  std::function<void(const QString&)> openFile_;
  QVBoxLayout* lists_;
};

}  // namespace evenkeel::gui
