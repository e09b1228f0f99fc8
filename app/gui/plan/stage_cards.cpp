// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/stage_cards.h"

#include <QHelpEvent>
#include <QPaintEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "app/gui/plan/plan_painting.h"
#include "app/gui/theme/theme.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

constexpr int kMargin = 8, kCardGap = 6, kRowGap = 10, kPadding = 8, kBarHeight = 7, kStripHeight = 9, kNarrowest = 20, kLeastForDetail = 36, kLeastForWords = 56;

}  // namespace

std::vector<CardPlace> cardPlaces(const PlanFacts& facts, int width, int leastWidth, int headingHeight, int cardHeight) {
  std::vector<CardPlace> places;
  int top = kMargin;
  for (int row = 0; row < static_cast<int>(facts.pipelines.size()); ++row) {
    const PipelineFacts& pipeline = facts.pipelines[static_cast<std::size_t>(row)];
    const int count = static_cast<int>(pipeline.stages.size());
    int units = 0;
    for (const StageFacts& stage : pipeline.stages) units += stage.units.size();
    // Every card has the least width; what is left is dealt out by units.
    const int spare = std::max(0, width - 2 * kMargin - kCardGap * (count - 1) - leastWidth * count);
    int left = kMargin, unitsBefore = 0;
    for (int s = 0; s < count; ++s) {
      const int own = pipeline.stages[static_cast<std::size_t>(s)].units.size();
      const int extra = spare * (unitsBefore + own) / std::max(1, units) - spare * unitsBefore / std::max(1, units);
      places.push_back({QRect(left, top + headingHeight, leastWidth + extra, cardHeight), row, s});
      left += leastWidth + extra + kCardGap;
      unitsBefore += own;
    }
    top += headingHeight + cardHeight + kRowGap;
  }
  return places;
}

StageCards::StageCards(Detail detail, QWidget* parent) : QWidget(parent), detail_(detail) {
  setObjectName(QStringLiteral("stageCards"));
  setAccessibleName(tr("Stages"));
}

void StageCards::setFacts(const PlanFacts& facts) {
  facts_ = facts;
  std::size_t stages = 0;
  for (const PipelineFacts& pipeline : facts_.pipelines) stages += pipeline.stages.size();
  setAccessibleDescription(tr("%1 cards; the table says the same in rows").arg(stages));
  updateGeometry();
  update();
}

void StageCards::setSelectedStage(std::optional<std::pair<int, int>> pipelineAndStage) {
  selected_ = pipelineAndStage;
  update();
}

int StageCards::leastWidth(int room) const {
  if (detail_ == Detail::Full) return 150;
  // Compact cards share what there is: a long pipeline has narrow ones, and their tool tips say what they cannot.
  std::size_t longest = 1;
  for (const PipelineFacts& pipeline : facts_.pipelines) longest = std::max(longest, pipeline.stages.size());
  const int count = static_cast<int>(longest);
  return std::clamp((room - 2 * kMargin - kCardGap * (count - 1)) / count, kNarrowest, 64);
}
int StageCards::headingHeight() const { return fontMetrics().height() + 4; }
int StageCards::cardHeight() const {
  const int lines = detail_ == Detail::Compact ? 1 : 3;
  return 2 * kPadding + lines * (fontMetrics().height() + 2) + kBarHeight + 6 + kStripHeight + 2;
}

std::vector<CardPlace> StageCards::places() const {
  return cardPlaces(facts_, width(), leastWidth(width()), headingHeight(), cardHeight());
}

QSize StageCards::minimumSizeHint() const {
  QSize size(200, kMargin);
  for (const CardPlace& place : cardPlaces(facts_, 0, leastWidth(0), headingHeight(), cardHeight()))
    size = size.expandedTo({place.rect.right() + kMargin, place.rect.bottom() + kMargin});
  return size;
}

QSize StageCards::sizeHint() const { return minimumSizeHint(); }

const StageFacts* StageCards::stageAt(QPoint position) const {
  for (const CardPlace& place : places()) {
    if (place.rect.contains(position))
      return &facts_.pipelines[static_cast<std::size_t>(place.row)].stages[static_cast<std::size_t>(place.stage)];
  }
  return nullptr;
}

bool StageCards::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const StageFacts* stage = stageAt(help->pos());
  stage == nullptr ? QToolTip::hideText() : QToolTip::showText(help->globalPos(), stageText(*stage), this);
  return true;
}

void StageCards::mousePressEvent(QMouseEvent* event) {
  if (const StageFacts* stage = stageAt(event->pos())) emit stageClicked(stage->pipeline, stage->stage);
}

void StageCards::paintEvent(QPaintEvent* event) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  for (const CardPlace& place : places()) {
    const PipelineFacts& pipeline = facts_.pipelines[static_cast<std::size_t>(place.row)];
    const bool isInRow = place.rect.top() - headingHeight() <= event->rect().bottom() && place.rect.bottom() >= event->rect().top();
    if (!isInRow) continue;  // most of a large plan is scrolled away
    if (place.stage == 0) {
      QString text = placeText(pipeline) + QStringLiteral("  ·  ") +
                     tr("%1 samples in micro-batches of %2").arg(exactText(pipeline.localBatch)).arg(pipeline.microBatch);
      if (pipeline.time && detail_ == Detail::Full)
        text += QStringLiteral("  ·  ") + timeText(*pipeline.time) + tr(", bubbles %1").arg(percentText(pipeline.bubbleFraction));
      painter.setPen(palette().color(QPalette::WindowText));
      const QRect line(kMargin, place.rect.top() - headingHeight(), width() - 2 * kMargin, headingHeight() - 2);
      painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, fontMetrics().elidedText(text, Qt::ElideRight, line.width()));
    }
    if (place.rect.intersects(event->rect())) paintCard(painter, place.rect, pipeline.stages[static_cast<std::size_t>(place.stage)]);
  }
}

void StageCards::paintCard(QPainter& painter, const QRect& rect, const StageFacts& stage) const {
  const bool isSelected = selected_ == std::pair(stage.pipeline, stage.stage);
  painter.setPen(QPen(deviceColour(stage.typeIndex), isSelected ? 3.5 : 2));
  painter.setBrush(isSelected ? palette().color(QPalette::AlternateBase) : palette().color(QPalette::Base));
  painter.drawRoundedRect(QRectF(rect).adjusted(1, 1, -1, -1), 5, 5);
  const QRect inside = rect.adjusted(kPadding, kPadding, -kPadding, -kPadding);
  const int line = fontMetrics().height() + 2;
  int top = inside.top();
  const auto write = [&](const QString& text, QPalette::ColorRole role) {
    const QString fitting = fontMetrics().elidedText(text, Qt::ElideRight, inside.width());
    painter.setPen(palette().color(role));
    if (fitting != QStringLiteral("…")) painter.drawText(QRect(inside.left(), top, inside.width(), line), Qt::AlignLeft | Qt::AlignVCenter, fitting);
    top += line;
  };
  const QString mark = stage.isBottleneck ? QStringLiteral("◆ ") : QString();
  const QString layers = tr("%1 L").arg(QString::number(stage.layers, 'g', 5));
  const QString degrees = QStringLiteral("%1 · TP %2 · DP %3").arg(layers).arg(stage.tp).arg(stage.dp);
  if (detail_ == Detail::Compact && leastWidth(width()) < kLeastForWords) {
    write(QString::number(stage.layers, 'g', 5), QPalette::Text);  // all of the row alike, whatever a pixel more would let in
  } else if (detail_ == Detail::Compact) {
    write(mark + (fontMetrics().horizontalAdvance(mark + degrees) <= inside.width() ? degrees : layers), QPalette::Text);
  } else {
    write(mark + stage.devices, QPalette::Text);
    write(degrees, QPalette::Text);
    const auto& p = stage.predicted;
    write(p ? tr("%1 a micro-batch").arg(timeText(p->forward + p->backward)) : QString(), QPalette::PlaceholderText);
  }
  top += 2;
  if (stage.predicted) {
    const QString sign = inside.width() < kLeastForDetail ? QString() : signOf(fullness(stage.predicted->memory));
    const int signWidth = sign.isEmpty() ? 0 : fontMetrics().horizontalAdvance(sign) + 4;
    paintMemoryBar(painter, QRectF(inside.left(), top, inside.width() - signWidth, kBarHeight), stage.predicted->memory,
                   palette());
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(QRect(inside.left(), top - 6, inside.width(), kBarHeight + 12), Qt::AlignRight | Qt::AlignVCenter, sign);
  }
  top += kBarHeight + 6;
  if (inside.width() < kLeastForDetail) return;  // its cells would be thinner than their outlines
  paintRecomputeStrip(painter, QRectF(inside.left(), top, std::min(inside.width(), recomputeStripWidth(12)), kStripHeight), stage,
                      palette());
}

}  // namespace evenkeel::gui
