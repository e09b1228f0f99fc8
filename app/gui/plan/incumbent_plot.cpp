// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/incumbent_plot.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "app/gui/theme/theme.h"
#include "app/gui/timeline/time_axis.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

constexpr int kScaleLines = 4;

}  // namespace

IncumbentPlot::IncumbentPlot(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("incumbentPlot"));
  setAccessibleName(tr("Best iteration time over the time of the search"));
}

void IncumbentPlot::setPlaceholder(const QString& text) {
  placeholder_ = text;
  update();
}

void IncumbentPlot::setSearch(const SearchSnapshot& search) {
  search_ = search;
  if (!search_.curve.empty()) {
    fastest_ = search_.curve.back().iteration;
    slowest_ = search_.curve.front().iteration;
    if (search_.bound) fastest_ = std::min(fastest_, *search_.bound);
    // Room above and below, and a scale also for one point alone.
    const double room = std::max(0.02, std::log(slowest_ / fastest_) * 0.12);
    fastest_ = fastest_ * std::exp(-room);
    slowest_ = slowest_ * std::exp(room);
    end_ = std::max(search_.elapsed, search_.curve.back().found * 1.02);
    setAccessibleDescription(tr("best %1, the plan number %2").arg(timeText(search_.curve.back().iteration)));
  }
  update();
}

QRectF IncumbentPlot::area() const {
  const int left = fontMetrics().horizontalAdvance(QStringLiteral("1234 ms")) + 14;
  return QRectF(rect()).adjusted(left, 10, -16, -fontMetrics().height() - 8);
}

double IncumbentPlot::xOf(Seconds found) const { return area().left() + area().width() * (end_.value > 0 ? found / end_ : 0); }

double IncumbentPlot::yOf(Seconds iteration) const {
  return area().bottom() - area().height() * std::log(iteration / fastest_) / std::log(slowest_ / fastest_);
}

QString IncumbentPlot::textAt(QPoint position) const {
  const SearchSnapshot::Point* best = nullptr;
  for (const auto& point : search_.curve) {
    if (xOf(point.found) <= position.x() + 4) best = &point;
  }
  if (best == nullptr) return {};
  const QString text = tr("%1 an iteration, found after %2").arg(timeText(best->iteration), timeText(best->found));
  return best->finder.empty() ? text : text + tr(" by \"%1\"").arg(QString::fromStdString(best->finder));
}

bool IncumbentPlot::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), textAt(help->pos()), this);
  return true;
}

void IncumbentPlot::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  painter.setPen(palette().color(QPalette::Mid));
  painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
  if (search_.curve.empty()) {
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(rect().adjusted(20, 10, -20, -10), Qt::AlignCenter | Qt::TextWordWrap,
                     search_.isRunning           ? tr("Searching; no plan fits yet")
                     : search_.elapsed.value > 0 ? tr("The search found no plan")
                                                 : placeholder_);
    return;
  }
  paintScale(painter);
  paintBound(painter);
  paintCurve(painter);
}

void IncumbentPlot::paintScale(QPainter& painter) const {
  const QRectF plot = area();
  const int line = fontMetrics().height();
  // Round values: a line at any other place would look like a second, slightly wrong mark of the best plan or the bound.
  const double step = roundStep((slowest_ - fastest_).value / kScaleLines);
  double lastY = plot.bottom() + line;
  for (double at = std::ceil(fastest_.value / step) * step; at <= slowest_.value; at += step) {
    const Seconds value{at};
    const double y = std::round(yOf(value)) + 0.5;
    if (lastY - y < 1.5 * line || y < plot.top() + line / 2.0) continue;
    lastY = y;
    painter.setPen(QPen(colours(palette()).grid, 1));
    painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(QRectF(0, y - line / 2.0, plot.left() - 6, line), Qt::AlignRight | Qt::AlignVCenter, timeText(value));
  }
  painter.setPen(palette().color(QPalette::PlaceholderText));
  const QRectF below(plot.left(), plot.bottom() + 3, plot.width(), line);
  painter.drawText(below, Qt::AlignLeft | Qt::AlignVCenter, QStringLiteral("0"));
  painter.drawText(below, Qt::AlignHCenter | Qt::AlignVCenter, tr("time of the search"));
  painter.drawText(below, Qt::AlignRight | Qt::AlignVCenter, timeText(end_));
}

void IncumbentPlot::paintBound(QPainter& painter) const {
  if (!search_.bound) return;
  const QRectF plot = area();
  const double y = std::round(yOf(*search_.bound)) + 0.5;
  const QString text = tr("bound %1: no plan is faster").arg(timeText(*search_.bound));
  painter.setPen(QPen(colours(palette()).good, 1, Qt::DashLine));
  painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
  painter.setPen(colours(palette()).good);
  const bool isLow =
      yOf(search_.curve.back().iteration) > y - 2 * fontMetrics().height();  // the curve ends where the text would stand
  const double top = isLow ? y + 1 : y - fontMetrics().height() - 1;
  painter.drawText(QRectF(plot.left() + 4, top, plot.width() - 8, fontMetrics().height()), Qt::AlignLeft | Qt::AlignVCenter,
                   text);
}

void IncumbentPlot::paintCurve(QPainter& painter) const {
  const QColor colour = colours(palette()).accent;
  QPolygonF steps;
  for (const auto& point : search_.curve) {
    const QPointF at(xOf(point.found), yOf(point.iteration));
    if (!steps.isEmpty()) steps << QPointF(at.x(), steps.back().y());
    steps << at;
  }
  steps << QPointF(xOf(end_), steps.back().y());
  painter.setPen(QPen(colour, 2));
  painter.drawPolyline(steps);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour);
  for (const auto& point : search_.curve) painter.drawEllipse(QPointF(xOf(point.found), yOf(point.iteration)), 3, 3);
  const QString text = tr("best %1").arg(timeText(search_.curve.back().iteration));
  const double height = fontMetrics().height(), width = fontMetrics().horizontalAdvance(text) + 4;
  const QRectF place(area().right() - width, steps.back().y() - height - 3, width, height);
  painter.fillRect(place, palette().color(QPalette::Base));  // the curve may have come down through it
  painter.setPen(palette().color(QPalette::Text));
  painter.drawText(place, Qt::AlignRight | Qt::AlignVCenter, text);
}

}  // namespace evenkeel::gui
