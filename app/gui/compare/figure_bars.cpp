// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/compare/figure_bars.h"

#include <QPainter>
#include <algorithm>

#include "app/gui/theme/theme.h"

namespace evenkeel::gui {
namespace {

constexpr int kMargin = 8, kGap = 8;

}  // namespace

FigureBars::FigureBars(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("figureBars"));
  setAccessibleName(tr("Key figures of all plans"));
}

void FigureBars::setTable(std::vector<Column> columns, std::vector<Row> rows) {
  columns_ = std::move(columns);
  rows_ = std::move(rows);
  QStringList words;
  for (const Row& row : rows_) {
    for (std::size_t c = 0; c < columns_.size(); ++c)
      words << QStringLiteral("%1, %2: %3").arg(row.heading, columns_[c].heading, row.texts[c]);
  }
  setAccessibleDescription(words.join(QLatin1Char('\n')));
  updateGeometry();
  update();
}

int FigureBars::rowHeight() const { return fontMetrics().height() + 7; }

QSize FigureBars::sizeHint() const { return {420, 2 * kMargin + rowHeight() * static_cast<int>(rows_.size() + 1)}; }

QSize FigureBars::minimumSizeHint() const { return {330, 80}; }

int FigureBars::bestRow(std::size_t column) const {
  int best = -1;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const auto& value = rows_[r].values[column];
    if (!value) continue;
    if (best < 0) best = static_cast<int>(r);
    const double other = *rows_[static_cast<std::size_t>(best)].values[column];
    if (columns_[column].isMoreBetter ? *value > other : *value < other) best = static_cast<int>(r);
  }
  return best;
}

void FigureBars::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  const Colours& theme = colours(palette());
  painter.fillRect(rect(), palette().color(QPalette::Base));
  if (rows_.empty()) {
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(rect().adjusted(12, 12, -12, -12), Qt::AlignCenter | Qt::TextWordWrap,
                     tr("Key figures stand here once there are plans."));
    return;
  }
  int names = 0;
  for (const Row& row : rows_) names = std::max(names, fontMetrics().horizontalAdvance(row.heading));
  const int left = kMargin + names + kGap, height = rowHeight();
  const double each = static_cast<double>(width() - left - kMargin) / static_cast<double>(columns_.size());
  const auto yOf = [&](std::size_t row) { return kMargin + height * static_cast<int>(row + 1); };
  painter.setPen(palette().color(QPalette::Text));
  for (std::size_t r = 0; r < rows_.size(); ++r)
    painter.drawText(QRect(kMargin, yOf(r), names, height), Qt::AlignLeft | Qt::AlignVCenter, rows_[r].heading);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const double x = left + each * static_cast<double>(c), room = each - kGap;
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(QRectF(x, kMargin, room, height), Qt::AlignLeft | Qt::AlignVCenter,
                     fontMetrics().elidedText(columns_[c].heading, Qt::ElideRight, static_cast<int>(room)));
    double most = 0;
    for (const Row& row : rows_) most = std::max(most, row.values[c].value_or(0));
    const int best = bestRow(c);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const QRectF cell(x, yOf(r) + 2, room, height - 4);
      const bool isBest = static_cast<int>(r) == best;
      if (rows_[r].values[c] && most > 0) {
        QColor colour = theme.accent;
        colour.setAlphaF(isBest ? 0.45F : 0.18F);
        painter.fillRect(QRectF(cell.left(), cell.top(), std::max(2.0, room * *rows_[r].values[c] / most), cell.height()),
                         colour);
      }
      QFont font = this->font();
      font.setBold(isBest);
      painter.setFont(font);
      painter.setPen(palette().color(rows_[r].values[c] ? QPalette::Text : QPalette::PlaceholderText));
      painter.drawText(cell.adjusted(4, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, rows_[r].texts[c]);
    }
    painter.setFont(font());
  }
}

}  // namespace evenkeel::gui
