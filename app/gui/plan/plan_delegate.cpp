// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/plan_delegate.h"

#include <QApplication>
#include <QPainter>

#include "app/gui/plan/plan_model.h"
#include "app/gui/plan/plan_painting.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

constexpr int kBarWidth = 90, kBarHeight = 9, kCell = 10, kMargin = 8, kRowPadding = 8;

QRectF barPlace(const QRect& cell) {
  return {static_cast<double>(cell.left() + kMargin), static_cast<double>(cell.center().y() - kBarHeight / 2), kBarWidth,
          kBarHeight};
}

void paintMemory(QPainter& painter, const QStyleOptionViewItem& option, const MemoryUse& memory, const QColor& text) {
  const QRect area = option.rect.adjusted(kMargin, 0, -kMargin, 0);
  paintMemoryBar(painter, barPlace(option.rect), memory, option.palette);
  painter.setPen(text);
  const QString numbers = QStringLiteral("%1 / %2").arg(bytesText(memory.total()), bytesText(memory.capacity));
  painter.drawText(area.adjusted(kBarWidth + 8, 0, -18, 0), Qt::AlignVCenter | Qt::AlignRight, numbers);
  QFont bold = option.font;
  bold.setBold(true);
  painter.setFont(bold);
  painter.drawText(area, Qt::AlignVCenter | Qt::AlignRight, signOf(fullness(memory)));
}

}  // namespace

void PlanDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const auto* stage = index.data(PlanModel::kStageRole).value<const StageFacts*>();
  const bool isPicture = stage != nullptr && (index.column() == PlanModel::Memory || index.column() == PlanModel::Recomputed);
  if (!isPicture) return QStyledItemDelegate::paint(painter, option, index);
  QStyleOptionViewItem plain = option;
  initStyleOption(&plain, index);
  plain.text.clear();
  const QStyle* style = plain.widget != nullptr ? plain.widget->style() : QApplication::style();
  style->drawControl(QStyle::CE_ItemViewItem, &plain, painter, plain.widget);
  painter->save();
  const bool isSelected = plain.state.testFlag(QStyle::State_Selected);
  const auto clearBehind = [&](const QRectF& picture) {  // its colours mean something, also in a selected row
    if (isSelected) painter->fillRect(picture.adjusted(-3, -3, 3, 3), plain.palette.color(QPalette::Base));
  };
  if (index.column() == PlanModel::Memory && stage->predicted) {
    clearBehind(barPlace(plain.rect));
    paintMemory(*painter, plain, stage->predicted->memory,
                plain.palette.color(isSelected ? QPalette::HighlightedText : QPalette::Text));
  } else if (index.column() == PlanModel::Recomputed) {
    const double height = 12, top = plain.rect.center().y() - height / 2;
    const QRectF strip(plain.rect.left() + kMargin, top, recomputeStripWidth(kCell), height);
    clearBehind(strip);
    paintRecomputeStrip(*painter, strip, *stage, plain.palette);
  }
  painter->restore();
}

QSize PlanDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QSize size = QStyledItemDelegate::sizeHint(option, index);
  size.setHeight(option.fontMetrics.height() + kRowPadding);
  if (index.column() == PlanModel::Memory)
    size.setWidth(kBarWidth + option.fontMetrics.horizontalAdvance(QStringLiteral("99.9 GiB / 99.9 GiB")) + 26 + 2 * kMargin);
  if (index.column() == PlanModel::Recomputed) size.setWidth(recomputeStripWidth(kCell) + 2 * kMargin);
  if (index.column() >= PlanModel::Layers && index.column() <= PlanModel::Time) size.rwidth() += 8;
  return size;
}

}  // namespace evenkeel::gui
