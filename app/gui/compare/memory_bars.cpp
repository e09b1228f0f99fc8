// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/compare/memory_bars.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "app/gui/theme/theme.h"

namespace evenkeel::gui {
namespace {

constexpr double kGroupGap = 18, kWidestBar = 26;
constexpr double kLeastGroup = 90;  // of a group, for its heading
constexpr double kHeadroom = 1.08;  // what is drawn above the limit

double used(const StageFacts& stage) {
  if (!stage.predicted) return 0;
  const MemoryUse& memory = stage.predicted->memory;
  return static_cast<double>(memory.total().value) / static_cast<double>(std::max<std::int64_t>(1, memory.capacity.value));
}

std::size_t stageCount(const PlanFacts& facts) {
  std::size_t count = 0;
  for (const PipelineFacts& pipeline : facts.pipelines) count += pipeline.stages.size();
  return count;
}

}  // namespace

MemoryBars::MemoryBars(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("memoryBars"));
  setAccessibleName(tr("Peak memory of each stage"));
}

void MemoryBars::setGroups(std::vector<Group> groups) {
  groups_ = std::move(groups);
  QStringList words;
  for (const Group& group : groups_) {
    for (const PipelineFacts& pipeline : group.facts.pipelines) {
      for (const StageFacts& stage : pipeline.stages) {
        if (stage.predicted)
          words << QStringLiteral("%1, %2, stage %3: %4")
                       .arg(group.heading, placeText(pipeline))
                       .arg(stage.stage)
                       .arg(memoryText(stage.predicted->memory));
      }
    }
  }
  setAccessibleDescription(words.join(QLatin1Char('\n')));
  update();
}

QRectF MemoryBars::area() const {
  const int line = fontMetrics().height();
  return QRectF(rect()).adjusted(fontMetrics().horizontalAdvance(QStringLiteral("100 %")) + 10, 6, -6, -line - 6);
}

MemoryBars::Widths MemoryBars::widths() const {
  const double groups = static_cast<double>(std::max<std::size_t>(1, groups_.size()));
  const double room = area().width() - kGroupGap * groups;
  const double least = std::min(kLeastGroup, room / groups);
  double each = kWidestBar;
  // A group that is too small for its heading takes more than its share: the others have the less, and then perhaps more of them
  // are too small.
  for (std::size_t pass = 0; pass <= groups_.size(); ++pass) {
    double left = room, bars = 0;
    for (const Group& group : groups_) {
      const auto count = static_cast<double>(stageCount(group.facts));
      if (each * count < least) left -= least;
      else bars += count;
    }
    if (bars > 0) each = std::min(each, left / bars);
  }
  return {each, least};
}

QRectF MemoryBars::groupArea(std::size_t group) const {
  const auto [each, least] = widths();
  const QRectF whole = area();
  double left = whole.left();
  for (std::size_t g = 0; g < group; ++g)
    left += std::max(least, each * static_cast<double>(stageCount(groups_[g].facts))) + kGroupGap;
  return {left, whole.top(), each * static_cast<double>(stageCount(groups_[group].facts)), whole.height()};
}

std::vector<MemoryBars::Bar> MemoryBars::bars() const {
  std::vector<Bar> bars;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const QRectF place = groupArea(g);
    const double each = place.width() / static_cast<double>(std::max<std::size_t>(1, stageCount(groups_[g].facts)));
    double left = place.left();
    for (const PipelineFacts& pipeline : groups_[g].facts.pipelines) {
      for (const StageFacts& stage : pipeline.stages) {
        const double height = place.height() / kHeadroom, gap = std::min(3.0, each / 4);
        bars.push_back({QRectF(left, place.bottom() - height, each - gap, height), &stage});
        left += each;
      }
    }
  }
  return bars;
}

QString MemoryBars::textAt(QPoint position) const {
  for (const Bar& bar : bars()) {
    if (bar.rect.contains(position) && bar.stage->predicted)
      return stageText(*bar.stage).section(QLatin1Char('\n'), 0, 0) + QLatin1Char('\n') +
             memoryDetail(bar.stage->predicted->memory);
  }
  return {};
}

bool MemoryBars::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), textAt(help->pos()), this);
  return true;
}

void MemoryBars::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  const Colours& theme = colours(palette());
  painter.fillRect(rect(), palette().color(QPalette::Base));
  if (groups_.empty()) {
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(rect().adjusted(12, 12, -12, -12), Qt::AlignCenter | Qt::TextWordWrap,
                     tr("Peak memory of the stages stands here once there are plans."));
    return;
  }
  const QRectF whole = area();
  const int line = fontMetrics().height();
  for (const Bar& bar : bars()) {
    const Fullness level = bar.stage->predicted ? fullness(bar.stage->predicted->memory) : Fullness::Roomy;
    const QColor colour = level == Fullness::Full ? theme.error : level == Fullness::Tight ? theme.warning : theme.accent;
    const double height = bar.rect.height() * std::min(used(*bar.stage), kHeadroom);
    const QRectF filled(bar.rect.left(), bar.rect.bottom() - height, bar.rect.width(), height);
    painter.fillRect(bar.rect, theme.waiting);
    painter.fillRect(filled, colour);
    painter.fillRect(QRectF(bar.rect.left(), bar.rect.bottom() - 3, bar.rect.width(), 3), deviceColour(bar.stage->typeIndex));
    if (bar.rect.width() >= 12 && level != Fullness::Roomy) {
      painter.setPen(isDark(palette()) ? QColor(0x14161a) : QColor(Qt::white));
      painter.drawText(filled.adjusted(-4, 2, 4, 0), Qt::AlignHCenter | Qt::AlignTop, signOf(level));
    }
  }
  for (const double part : {0.0, 0.5, 1.0}) {
    const double y = std::round(whole.bottom() - whole.height() / kHeadroom * part) + 0.5;
    painter.setPen(part == 1 ? QPen(theme.error, 1, Qt::DashLine) : QPen(theme.grid, 1));
    painter.drawLine(QPointF(whole.left(), y), QPointF(whole.right(), y));
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(QRectF(0, y - line / 2.0, whole.left() - 6, line), Qt::AlignRight | Qt::AlignVCenter,
                     QStringLiteral("%1 %").arg(100 * part));
  }
  painter.setPen(palette().color(QPalette::Text));
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const double left = groupArea(g).left(), right = g + 1 < groups_.size() ? groupArea(g + 1).left() - 4 : whole.right();
    painter.drawText(QRectF(left, whole.bottom() + 3, right - left, line), Qt::AlignLeft | Qt::AlignVCenter,
                     fontMetrics().elidedText(groups_[g].heading, Qt::ElideRight, static_cast<int>(right - left)));
  }
}

}  // namespace evenkeel::gui
