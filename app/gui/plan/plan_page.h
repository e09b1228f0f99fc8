// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>

#include "app/gui/plan/search_session.h"
#include "app/gui/window/page.h"

class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QPushButton;

namespace evenkeel::gui {

class PlanView;
class SearchPanel;

/// Choose a planner, watch it search, read what it found. A plan that was found becomes one of the project's, as an undoable
/// edit; a plan that was made for other inputs than the project has now is marked.
class PlanPage final : public Page {
  Q_OBJECT

 public:
  /// folder: where clusters are written that the shown command names.
  PlanPage(Workspace& workspace, QString folder, QWidget* parent = nullptr);
  [[nodiscard]] QString missing() const override;

  void search();
  void stop();
  void replay(const QString& eventsFile);

 private:
  QWidget* makeControls();
  QWidget* makeChooser();
  void refresh(Parts parts);
  void refreshPlans();
  void refreshControls();
  void showChosen();
  void saveChosen();
  void removeChosen();
  void showStale();
  void poll();
  void finish();
  void keep(const Plan& plan);
  void followSelection();
  void selectStage(int pipeline, int stage);
  [[nodiscard]] const NamedPlan* chosen() const;
  [[nodiscard]] Result<SearchRequest> request() const;

  QString folder_;
  SearchSession session_;
  QTimer timer_;
  QTimer jobTimer_;
  int job_ = 0;
  bool isFollowing_ = false;  // what the search finds is shown, not a plan of the project
  bool isReplay_ = false;
  std::optional<Error> failure_;  // of the last search, while it is what there is to say

  QComboBox* planner_;
  QLineEdit* options_;
  QDoubleSpinBox* limit_;
  QPushButton* search_;
  QPushButton* stop_;
  QWidget* chooser_ = nullptr;  // plans_ with its label and what is stale
  QComboBox* plans_;
  QLabel* stale_;
  QPushButton* again_;
  QPushButton* save_ = nullptr;
  QPushButton* remove_ = nullptr;
  SearchPanel* panel_;
  PlanView* view_;
};

/// "eth, 14:02", with a number behind it if the project has a plan of that name.
[[nodiscard]] std::string freshPlanName(const Project& project, const std::string& planner);

}  // namespace evenkeel::gui
