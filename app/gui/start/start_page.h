// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "app/gui/window/page.h"

class QGridLayout;

namespace evenkeel::gui {

/// A run that goes on, as the page names it, and what brings it back into view.
struct RunningRun {
  QString title;
  std::function<void()> attach;
};

/// What the page asks of the window that it is in.
struct StartLinks {
  std::function<void(const QString& path)> openFile;
  std::function<void(Project)> startFrom;  // leaves the document that is open, unless its person objects
  std::function<std::vector<RunningRun>()> running;
};

/// Without a document: new, open, examples, recent files, what a crash left, and runs that go on without a window.
class StartPage final : public Page {
  Q_OBJECT

 public:
  StartPage(Workspace& workspace, StartLinks links, QWidget* parent = nullptr);
  /// Asks its links again.
  void fill();

 private:
  void showEvent(QShowEvent* event) override;
  void addRunning(QGridLayout& list);
  void addRecovered(QGridLayout& list);
  void addRecent(QGridLayout& list);

  StartLinks links_;
  QGridLayout* examples_;
  QWidget* lists_ = nullptr;  // made anew whenever the page is shown
};

}  // namespace evenkeel::gui
