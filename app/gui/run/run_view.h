// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "app/gui/run/job_session.h"

class QLabel;
class QPushButton;

namespace evenkeel::gui {

class CurvePlot;
class KeyFigures;
class OutcomeView;
class PreflightView;
class RunLog;

/// One job as it goes: title and state, preflight, outcome, key figures, curves of loss and throughput, log. Told by take();
/// asks for Stop and Detach by signals.
class RunView final : public QWidget {
  Q_OBJECT

 public:
  explicit RunView(QWidget* parent = nullptr);
  /// Empties everything for another job.
  void begin(const QString& title);
  /// Seconds since 1970: for how long the job has run.
  void setStarted(double started) { started_ = started; }
  void take(const SessionUpdate& update);
  [[nodiscard]] CurvePlot& loss() { return *loss_; }
  [[nodiscard]] CurvePlot& throughput() { return *throughput_; }

 signals:
  void stopRequested();
  void detachRequested();
  void resumeRequested(const QString& checkpoint);

 private:
  void changeEvent(QEvent* event) override;
  QWidget* makeHeader();
  QWidget* makeLoss();
  QWidget* makeThroughput();
  void showState();
  void showHeader(const SessionState& state);
  void predict(std::int64_t tokens);

  double started_ = 0;  // seconds since 1970; 0: not known
  QString title_;
  SessionState state_;
  QLabel* name_;
  QLabel* stateLabel_;
  QPushButton* stop_;
  QPushButton* detach_;
  PreflightView* preflight_;
  OutcomeView* outcome_;
  KeyFigures* figures_;
  CurvePlot* loss_;
  QLabel* validation_;  // what the second curve is; hidden while there is none
  CurvePlot* throughput_;
  QWidget* body_;
  RunLog* log_;
  bool isPredicted_ = false;
};

}  // namespace evenkeel::gui
