// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <array>

#include "app/gui/compare/compare_runs.h"

class QGridLayout;
class QLabel;
class QProgressBar;
class QPushButton;

namespace evenkeel::gui {

class StageCards;

/// What one planner came to: progress while it searches, then its key figures and stages, or its reason.
class CompareColumn final : public QFrame {
  Q_OBJECT

 public:
  explicit CompareColumn(const Planner& planner, QWidget* parent = nullptr);
  /// best: of all columns; the figures stand against it.
  void setContender(const Contender& contender, std::optional<Seconds> best);
  void setProgress(const SearchSnapshot& search);
  /// The texts of all figures; empty where there is no plan.
  [[nodiscard]] QStringList figureTexts() const;
  /// Shows only these figures, a flag each, and only these pipelines of the plan; `left` says what else there is, may be empty.
  void showOnly(const std::vector<bool>& figures, const PlanFacts& facts, const QString& left);

 signals:
  void cancelled();
  void used();  // "Use this plan"

 private:
  enum Figure { Iteration, Samples, AgainstBest, Bubble, Mfu, WorstMemory, Devices, SearchTime, Gap, OwnEstimate, FigureCount };
  QWidget* makeFigures();
  void showPlan(const Contender& contender, std::optional<Seconds> best);

  QLabel* title_;
  QLabel* state_;
  QProgressBar* bar_;
  QPushButton* cancel_;
  std::array<QLabel*, FigureCount> captions_{}, values_{};  // filled while figures_ is made
  QWidget* figures_;
  QLabel* reason_;
  StageCards* cards_;
  QLabel* left_;
  QPushButton* use_;
};

/// "-15.3 %": how much fewer samples a second than the best; "best" for the best.
[[nodiscard]] QString againstBestText(Seconds iteration, Seconds best);

}  // namespace evenkeel::gui
