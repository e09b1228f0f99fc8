// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <optional>
#include <vector>

namespace evenkeel::gui {

/// Key figures of several plans as a table of bars: a row a planner, a column a figure, the bar as long as the figure is of the
/// largest in its column, the number beside it. The best of each column is drawn strongly.
class FigureBars final : public QWidget {
  Q_OBJECT

 public:
  struct Column {
    QString heading;
    bool isMoreBetter = true;
  };
  struct Row {
    QString heading;
    std::vector<std::optional<double>> values;  // a column each; nothing: no plan
    std::vector<QString> texts;
  };
  explicit FigureBars(QWidget* parent = nullptr);
  void setTable(std::vector<Column> columns, std::vector<Row> rows);
  [[nodiscard]] QSize sizeHint() const override;
  [[nodiscard]] QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  [[nodiscard]] int rowHeight() const;
  /// Row with the best value of a column; -1: none has any.
  [[nodiscard]] int bestRow(std::size_t column) const;
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace evenkeel::gui
