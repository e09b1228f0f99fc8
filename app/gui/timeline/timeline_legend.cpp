// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/timeline/timeline_legend.h"

#include <QPainter>
#include <array>

#include "app/gui/theme/theme.h"
#include "app/gui/timeline/slice_text.h"

namespace evenkeel::gui {
namespace {

constexpr std::array kShown = {Span::Kind::Forward, Span::Kind::Backward,  Span::Kind::Send,
                               Span::Kind::Sync,    Span::Kind::Optimizer, Span::Kind::Wait};

}  // namespace

TimelineLegend::TimelineLegend(QWidget* parent) : QWidget(parent) {
  QStringList words;
  for (const Span::Kind kind : kShown) words << kindText(kind);
  setAccessibleName(tr("Colours of the timeline: %1").arg(words.join(QStringLiteral(", "))));
  setFixedHeight(QFontMetrics(font()).height() + 6);
}

void TimelineLegend::paintEvent(QPaintEvent* /*event*/) {
  const Colours& c = colours(palette());
  const std::array<QColor, kShown.size()> chips = {c.forward, c.backward, c.send, c.sync, c.optimizer, c.waiting};
  QPainter painter(this);
  const int side = 11, middle = height() / 2;
  int x = 8;
  for (std::size_t i = 0; i < kShown.size(); ++i) {
    const QString text = kindText(kShown[i]);
    const int tall = kShown[i] == Span::Kind::Send ? 4 : side;  // as thin as in the rows
    const QRect chip(x, middle - tall / 2, side, tall);
    painter.fillRect(chip, chips[i]);
    if (kShown[i] == Span::Kind::Wait) painter.fillRect(chip, QBrush(c.subtle, Qt::BDiagPattern));
    painter.setPen(palette().color(QPalette::WindowText));
    const int width = fontMetrics().horizontalAdvance(text);
    painter.drawText(QRect(x + side + 5, 0, width + 4, height()), Qt::AlignVCenter | Qt::AlignLeft, text);
    x += side + width + 22;
  }
}

}  // namespace evenkeel::gui
