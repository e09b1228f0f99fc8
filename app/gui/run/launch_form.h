// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <optional>

#include "app/gui/widgets/background.h"
#include "app/gui/window/page.h"
#include "core/plan/violations.h"
#include "launcher/job/job.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;
class QToolButton;

namespace evenkeel::gui {

/// What is to be launched: one of the project's plans, the text to train on, and the settings that a plan does not depend on.
/// Shows the command that does the same, and why a plan or a setting will not do.
class LaunchForm final : public QWidget {
  Q_OBJECT

 public:
  /// programs: the folder of evenkeel-agent and evenkeel-worker.
  LaunchForm(Workspace& workspace, std::filesystem::path programs, QWidget* parent = nullptr);

  /// Of the fields as they stand; nothing while something is missing.
  [[nodiscard]] std::optional<LaunchRequest> request() const;
  [[nodiscard]] QString planName() const;
  [[nodiscard]] QString command() const;
  /// Why nothing can be launched now although the form is complete ("a run is being started"); empty: it can.
  void setBusy(const QString& why);
  void setData(const QString& path);
  /// The next run goes on from this checkpoint; empty: from the beginning.
  void setResume(const QString& checkpoint);

 signals:
  void launchRequested();
  void checkRequested();

 private:
  void showEvent(QShowEvent* event) override;
  void changeEvent(QEvent* event) override;
  QWidget* makeDataRow();
  QWidget* makeSettingsRow();
  void changeSettings();
  QWidget* makeButtons();
  void fillPlans();
  void choosePlan();
  void judge();
  void refresh();
  [[nodiscard]] const Plan* plan() const;
  [[nodiscard]] Run run() const;
  [[nodiscard]] QString missing() const;
  [[nodiscard]] QString planSummary() const;

  Workspace& workspace_;
  const std::filesystem::path programs_;
  /// What is found out about the chosen plan, and the file of it that the command names.
  struct Verdict {
    std::vector<Violation> objections;
    bool isStale = false;
    Result<std::filesystem::path> file;
  };
  std::optional<Verdict> verdict_;  // nothing while it is being worked out
  Background background_;
  QString busy_;
  QComboBox* plans_;
  QLabel* summary_;
  QLineEdit* data_;
  QSpinBox* steps_;
  QLineEdit* learningRate_;
  QSpinBox* seed_;
  QSpinBox* checkpointEvery_;
  QLineEdit* resume_;
  QLabel* settings_;
  QToolButton* changeSettings_;
  Run more_;  // what the dialog of further settings sets
  QCheckBox* local_;
  QLabel* hint_;
  QPlainTextEdit* command_;
  QPushButton* copy_;
  QPushButton* check_;
  QPushButton* launch_;
};

}  // namespace evenkeel::gui
