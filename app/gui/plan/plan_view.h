// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "app/gui/plan/plan_model.h"
#include "app/gui/plan/plan_picture.h"
#include "app/gui/widgets/background.h"

class QLabel;
class QTabBar;
class QTreeView;

namespace evenkeel::gui {

class Stack;
class StageCards;
class TimelineView;

/// A plan: its figures in one line, then as table, as cards or as timeline. Or, in its place, why there is none.
class PlanView final : public QWidget {
  Q_OBJECT

 public:
  using Actions = std::vector<std::pair<QString, std::function<void()>>>;

  explicit PlanView(QWidget* parent = nullptr);

  /// Predicts it on another thread and then shows it, see shown(); until then what was there stays. A plan of wrong shape is not
  /// drawn; its violations stand there instead. The timeline is made when it is looked at.
  void setPlan(std::shared_ptr<const Plan> plan);
  /// Why there is no plan, and what may be done about it.
  void showReason(const QString& title, const QString& text, Actions actions = {});
  /// What is shown; null: a reason.
  [[nodiscard]] const std::shared_ptr<const Plan>& plan() const { return plan_; }
  /// The plan that was set is not shown yet.
  [[nodiscard]] bool isBusy() const { return background_.isBusy(); }
  [[nodiscard]] const PlanFacts& facts() const { return picture_.facts; }

  /// Marks a stage in all three views; says nothing of it.
  void setSelectedStage(std::optional<std::pair<int, int>> pipelineAndStage);
  /// The selected rows, or all of them, as tab-separated text in the clipboard.
  void copy();

 signals:
  void stageSelected(int pipeline, int stage);
  void shown();  // a plan, after setPlan()

 private:
  void showEvent(QShowEvent* event) override;
  QWidget* makeTable();
  QWidget* makeTimeline();
  void showTab(int tab);
  void workOut();
  void take(PlanPicture picture);
  void draw();
  void drawTab();
  void select(int pipeline, int stage);
  void fitColumns();

  PlanModel model_;
  PlanPicture picture_;
  std::shared_ptr<const Plan> plan_, wanted_;  // what is shown, and what was set
  Background background_;
  bool isDrawn_ = true;        // picture_ has been shown: not while the page is hidden
  std::set<int> drawnTabs_;    // those that show it
  bool isSelecting_ = false;
  Stack* stack_;
  QWidget* reason_;
  QWidget* content_;
  QLabel* headline_;
  QLabel* violations_;
  QTabBar* tabs_;
  Stack* tabStack_;
  QTreeView* table_;
  QLabel* notes_;
  StageCards* cards_;
  TimelineView* timeline_;
};

/// "1.84 s an iteration · 21.2 samples/s · MFU 31 % · bubble 11 % · worst memory 94 %"; the plan must be evaluated.
[[nodiscard]] QString headlineText(const Evaluation& evaluation, const PlanFacts& facts);

}  // namespace evenkeel::gui
