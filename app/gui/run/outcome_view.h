// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>

#include "app/gui/run/job_session.h"

class QLabel;
class QPlainTextEdit;
class QPushButton;

namespace evenkeel::gui {

/// What went wrong, and what a stop left: why a job could not start, the first rank that failed with its last lines, nodes out of
/// reach, node by node what still runs, and the checkpoint that a run which ended early can go on from. Hidden while there is nothing to say. All of it can be selected and copied.
class OutcomeView final : public QFrame {
  Q_OBJECT

 public:
  explicit OutcomeView(QWidget* parent = nullptr);
  void show(const SessionState& state);

 signals:
  /// The run that ended is to go on from this checkpoint.
  void resumeRequested(const QString& checkpoint);

 private:
  void paintEvent(QPaintEvent* event) override;
  QLabel* text_;
  QPlainTextEdit* lines_;
  QPushButton* resume_;
  QString checkpoint_;
  enum class Tone { Quiet, Warning, Error } tone_ = Tone::Quiet;
};

/// One line a node: "✓ nothing of the run is left on a", "✕ b3: processes 123, 124 are left".
[[nodiscard]] QString stopText(const StopReport& report);
/// "rank 1 on b3 failed after step 12: ..."
[[nodiscard]] QString failureText(const JobFailure& failure);

}  // namespace evenkeel::gui
