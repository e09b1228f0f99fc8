// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMainWindow>
#include <map>
#include <memory>

#include "app/gui/window/page.h"

class QLabel;
class QProgressBar;
class QPlainTextEdit;
class QToolButton;
class QTreeWidget;

namespace evenkeel::gui {

class ModeBar;
class Stack;

/// The window: mode bar, page, inspector, panels, status bar, menus. It wires; what pages show and do is theirs.
class MainWindow final : public QMainWindow {
  Q_OBJECT

 public:
  /// The document must outlive the window.
  explicit MainWindow(ProjectDocument& document);
  ~MainWindow() override;

  /// Takes the page and gives it its place; call once for each mode before show().
  void addPage(Mode mode, std::unique_ptr<Page> page);
  [[nodiscard]] Page* page(Mode mode) const;
  [[nodiscard]] Workspace& workspace() { return *workspace_; }
  void enter(Mode mode);
  /// Opens a project file; a failure stands in the message line and changes nothing.
  void openFile(const QString& path);
  /// Leaves the document for an unnamed one with this content, after asking about unsaved changes, and goes to Cluster.
  void startFrom(Project project);
  void restoreLayout();

 private:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

  void makeMenus();
  void makePanels();
  void makeStatusBar();
  void refresh();
  bool maySwitchDocument();
  void save();
  void saveHere();
  void saveAs();
  void rememberFile(const QString& path);
  void fillRecent();
  void showJob();
  void showCommand(const QString& command);

  ProjectDocument& document_;
  Selection selection_;
  MessageLine* messages_;
  std::unique_ptr<Workspace> workspace_;
  ModeBar* modes_;
  Stack* stack_;
  std::map<Mode, Page*> pages_;
  QDockWidget* inspector_ = nullptr;
  QTreeWidget* problems_ = nullptr;
  QPlainTextEdit* log_ = nullptr;
  QTreeWidget* jobs_ = nullptr;
  QMenu* recent_ = nullptr;
  QMenu* view_ = nullptr;
  QLabel* summary_ = nullptr;
  QLabel* jobTitle_ = nullptr;
  QProgressBar* jobBar_ = nullptr;
  QToolButton* jobCancel_ = nullptr;
  QToolButton* command_ = nullptr;  // the newest that was shown

  struct Job {
    int id = 0;
    QString title, text;
    double fraction = -1;
    std::function<void()> cancel;
  };
  std::vector<Job> running_;
};

/// Recent project files, newest first, at most ten; kept in the settings.
[[nodiscard]] QStringList recentFiles();

}  // namespace evenkeel::gui
