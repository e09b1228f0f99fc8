// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QPointer>
#include <QTimer>
#include <filesystem>
#include <memory>
#include <vector>

#include "app/gui/run/desktop_message.h"
#include "app/gui/run/job_session.h"
#include "app/gui/window/page.h"

namespace evenkeel::gui {

class EmptyState;
class LaunchForm;
class LoginDialog;
class RunList;
class RunView;
class RunningRuns;
class Stack;

/// Launch at the left, above the runs of this machine; the job that is followed at the right. A job never depends on this page:
/// leaving, detaching and closing the window let it go on.
class RunPage final : public Page {
  Q_OBJECT

 public:
  /// programs: the folder of evenkeel-agent and evenkeel-worker.
  RunPage(Workspace& workspace, std::filesystem::path programs, QWidget* parent = nullptr);
  ~RunPage() override;

  /// Follows a run, or shows the curves of an ended one.
  void open(const std::string& run);
  /// Runs that go on and that this page does not follow; kept up to date from the first show() of the window on.
  [[nodiscard]] RunningRuns& running() { return *running_; }
  /// How the end of a run that was followed is told to somebody who looks elsewhere; replaced in tests.
  void setDesktopMessage(DesktopMessage tell) { tellDesktop_ = std::move(tell); }

 private:
  void showEvent(QShowEvent* event) override;
  void check();
  void launch();
  JobSession& newSession(const QString& title);
  void poll();
  void showJob(const SessionUpdate& update);
  void askLogin();
  void note(const std::string& run);
  void askStop();
  void refresh();
  void tellEnd();

  LaunchForm* form_;
  RunList* runs_;
  RunView* view_;
  Stack* right_;
  QWidget* noPlan_;
  QWidget* noRun_;
  std::shared_ptr<LoginDesk> desk_;
  QPointer<LoginDialog> login_;
  RunningRuns* running_;
  std::unique_ptr<JobSession> session_;
  std::vector<std::unique_ptr<JobSession>> leaving_;  // detached, until their threads end
  SessionState state_;
  QString title_;
  std::int64_t step_ = 0;
  double loss_ = 0;
  bool isInJobs_ = false;
  bool isLaunch_ = false;  // what is followed was started here, for the open project
  DesktopMessage tellDesktop_;
  QTimer poll_;
  QElapsedTimer sinceReload_;
};

}  // namespace evenkeel::gui
