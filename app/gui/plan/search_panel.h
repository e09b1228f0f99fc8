// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "app/gui/plan/search_board.h"

class QLabel;

namespace evenkeel::gui {

class IncumbentPlot;

/// A search as it runs: the curve of its best plans with the bound, its steps, its counters, how far it is.
class SearchPanel final : public QWidget {
  Q_OBJECT

 public:
  explicit SearchPanel(QWidget* parent = nullptr);
  void setSearch(const SearchSnapshot& search);
  /// What stands in place of the curve before the first search.
  void setPlaceholder(const QString& text);

 private:
  IncumbentPlot* plot_;
  QLabel* progress_;
  QLabel* steps_;
  QLabel* counters_;
  QLabel* finder_;
};

/// "0:12 of 1:00 · gap 2.3 % to the bound 4.71 s"; the gap where a plan is known, the bound as soon as the planner gives one.
[[nodiscard]] QString progressText(const SearchSnapshot& search);
/// The part of the time limit that is over, in [0, 1]; below 0 without a limit.
[[nodiscard]] double progressOf(const SearchSnapshot& search);

}  // namespace evenkeel::gui
