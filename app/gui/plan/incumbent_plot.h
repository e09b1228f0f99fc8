// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "app/gui/plan/search_board.h"

namespace evenkeel::gui {

/// The best iteration time over the time of a search, as steps; the bound below which no plan can be, dashed. The time of an
/// iteration has a logarithmic scale.
class IncumbentPlot final : public QWidget {
  Q_OBJECT

 public:
  explicit IncumbentPlot(QWidget* parent = nullptr);
  void setSearch(const SearchSnapshot& search);
  /// Text in the middle while there is no curve.
  void setPlaceholder(const QString& text);
  /// What the tool tip at a place says: which plan was the best then, and who found it.
  [[nodiscard]] QString textAt(QPoint position) const;
  [[nodiscard]] QSize sizeHint() const override { return {420, 150}; }
  [[nodiscard]] QSize minimumSizeHint() const override { return {240, 110}; }

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  [[nodiscard]] QRectF area() const;
  [[nodiscard]] double xOf(Seconds found) const;
  [[nodiscard]] double yOf(Seconds iteration) const;
  void paintScale(QPainter& painter) const;
  void paintCurve(QPainter& painter) const;
  void paintBound(QPainter& painter) const;

  SearchSnapshot search_;
  QString placeholder_;
  Seconds end_{1}, fastest_{1}, slowest_{2};  // what the axes span
};

}  // namespace evenkeel::gui
