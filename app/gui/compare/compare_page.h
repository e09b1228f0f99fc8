// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>

#include "app/gui/compare/compare_runs.h"
#include "app/gui/plan/plan_facts.h"
#include "app/gui/window/page.h"

class QCheckBox;
class QDoubleSpinBox;
class QHBoxLayout;
class QLabel;
class QPushButton;
class QSplitter;

namespace evenkeel::gui {

class CompareColumn;
class FigureBars;
class MemoryBars;
class Stack;
class TimelineView;

/// Several planners on the same problem: columns of figures abreast, timelines below each other on one axis, memory bars.
class ComparePage final : public Page {
  Q_OBJECT

 public:
  /// folder: where clusters are written that the shown command names.
  ComparePage(Workspace& workspace, QString folder, QWidget* parent = nullptr);
  [[nodiscard]] QString missing() const override;

  /// Runs the ticked planners.
  void compare();
  /// Writes the report of all that were compared; there must be a plan.
  [[nodiscard]] Result<void> exportReport(const QString& file) const;

 private:
  QWidget* makeControls();
  QWidget* makePictures();
  void refresh(Parts parts);
  void refreshControls();
  void refreshStale();
  void followState(int index);
  void showResults();
  void poll();
  void use(int index);
  void fitColumns();
  void showDifferences();
  void showFigures();
  void askForReport();
  [[nodiscard]] std::vector<const Planner*> ticked() const;

  QString folder_;
  CompareRuns runs_;
  QTimer timer_;
  QTimer showTimer_;  // states that change together are shown once
  int job_ = 0;
  std::string comparedInputs_;  // hash of what was compared
  QString command_;             // that compares the same

  std::vector<std::pair<QCheckBox*, const Planner*>> choices_;
  QDoubleSpinBox* limit_;
  QPushButton* start_;
  QPushButton* stop_;
  QCheckBox* onlyDifferences_;
  QPushButton* export_;
  QLabel* stale_;
  Stack* stack_;
  QSplitter* results_;
  bool isSplitByHand_ = false;
  QWidget* columnRow_;
  QHBoxLayout* columnLayout_;
  std::vector<CompareColumn*> columns_;
  TimelineView* timeline_;
  MemoryBars* memory_;
  FigureBars* figures_;
};

}  // namespace evenkeel::gui
