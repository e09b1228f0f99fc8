// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/timeline/timeline_view.h"

#include <QHelpEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "app/gui/theme/theme.h"
#include "app/gui/timeline/slice_text.h"

namespace evenkeel::gui {
namespace {

constexpr double kZoomStep = 1.25;
constexpr int kPanStep = 80;          // pixels a key press
constexpr int kLongestBar = 1 << 28;  // pixels that a scroll bar can stand for
constexpr double kLabelMargin = 4;    // pixels of a slice beside its number, on both sides together
constexpr int kMostNumbers = 10'000;  // kept laid out

QColor colourOf(Span::Kind kind, const Colours& c) {
  switch (kind) {
    case Span::Kind::Forward: return c.forward;
    case Span::Kind::Backward: return c.backward;
    case Span::Kind::Send: return c.send;
    case Span::Kind::Wait: return c.waiting;
    case Span::Kind::Sync: return c.sync;
    case Span::Kind::Optimizer: return c.optimizer;
  }
  return c.waiting;
}

}  // namespace

QString shortName(const Lane& lane) { return QStringLiteral("P%1 S%2").arg(lane.pipeline).arg(lane.stage); }

TimelineView::TimelineView(QWidget* parent) : QAbstractScrollArea(parent) {
  setObjectName(QStringLiteral("timeline"));
  setAccessibleName(tr("Timeline"));
  setFocusPolicy(Qt::StrongFocus);
  setFrameShape(QFrame::NoFrame);
  viewport()->setMouseTracking(true);
  setToolTip(tr("Ctrl+wheel or W/S zooms, A/D or dragging pans, F shows everything"));
  layOut();
}

void TimelineView::setTimeline(const Timeline& timeline) {
  std::vector<Band> bands;
  if (!timeline.lanes.empty()) bands.push_back({QString(), std::make_shared<const SliceModel>(timeline)});
  setBands(std::move(bands));
}

void TimelineView::setBands(std::vector<Band> bands) {
  bands_ = std::move(bands);
  Seconds end;
  for (const Band& band : bands_) end = std::max(end, band.slices->end());
  axis_.setTotal(end);
  layOut();
}

void TimelineView::setSelectedStage(std::optional<std::pair<int, int>> pipelineAndStage) {
  selected_ = pipelineAndStage;
  viewport()->update();
}

void TimelineView::setPlaceholder(const QString& text) {
  placeholder_ = text;
  viewport()->update();
}

void TimelineView::fit() {
  axis_.fit();
  updateBars();
}

void TimelineView::layOut() {
  const QFontMetrics metrics(font());
  rulerHeight_ = metrics.height() + 6;
  labelWidth_ = 0;
  rows_.clear();
  int top = 0;
  for (int b = 0; b < static_cast<int>(bands_.size()); ++b) {
    const Band& band = bands_[static_cast<std::size_t>(b)];
    if (!band.heading.isEmpty()) {
      rows_.push_back({top, metrics.height() + 6, b, -1});
      top += rows_.back().height;
    }
    int pipeline = -1;
    for (int lane = 0; lane < static_cast<int>(band.slices->lanes().size()); ++lane) {
      const Lane& row = band.slices->lanes()[static_cast<std::size_t>(lane)];
      if (pipeline >= 0 && row.pipeline != pipeline) top += 4;  // pipelines stand apart
      pipeline = row.pipeline;
      rows_.push_back({top, metrics.height() + 6, b, lane});
      top += rows_.back().height;
      labelWidth_ = std::max(labelWidth_, metrics.horizontalAdvance(shortName(row)) + 16);
    }
    top += 4;
  }
  axis_.setWidth(viewport()->width() - labelWidth_);
  updateBars();
}

void TimelineView::updateBars() {
  isUpdatingBars_ = true;
  const int height = rows_.empty() ? 0 : rows_.back().top + rows_.back().height;
  verticalScrollBar()->setPageStep(viewport()->height() - rulerHeight_);
  verticalScrollBar()->setSingleStep(20);
  verticalScrollBar()->setRange(0, std::max(0, height - (viewport()->height() - rulerHeight_)));
  const double pixels = std::min<double>(kLongestBar, axis_.total() / axis_.perPixel());
  const double scale = pixels / axis_.total().value;
  horizontalScrollBar()->setPageStep(static_cast<int>((axis_.last() - axis_.first()).value * scale));
  horizontalScrollBar()->setSingleStep(kPanStep / 4);
  horizontalScrollBar()->setRange(0, static_cast<int>(pixels) - horizontalScrollBar()->pageStep());
  horizontalScrollBar()->setValue(static_cast<int>(axis_.first().value * scale));
  isUpdatingBars_ = false;
  viewport()->update();
}

void TimelineView::scrollContentsBy(int dx, int /*dy*/) {
  if (!isUpdatingBars_ && dx != 0) {
    const QScrollBar& bar = *horizontalScrollBar();
    const double steps = bar.maximum() + bar.pageStep();
    const Seconds shown = axis_.last() - axis_.first();
    const Seconds first = axis_.total() * (bar.value() / std::max(1.0, steps));
    axis_.show(first, first + shown);
  }
  viewport()->update();
}

const TimelineView::Row* TimelineView::rowAt(int viewportY) const {
  const int y = viewportY - rulerHeight_ + verticalScrollBar()->value();
  if (viewportY < rulerHeight_) return nullptr;
  auto next = std::ranges::upper_bound(rows_, y, {}, &Row::top);
  if (next == rows_.begin()) return nullptr;
  const Row& row = *std::prev(next);
  return y < row.top + row.height ? &row : nullptr;
}

QString TimelineView::textAt(QPoint position) const {
  const Row* row = rowAt(position.y());
  if (row == nullptr || row->lane < 0) return {};
  const SliceModel& slices = *bands_[static_cast<std::size_t>(row->band)].slices;
  const auto lane = static_cast<std::size_t>(row->lane);
  const QString name = QString::fromStdString(slices.lanes()[lane].name);
  if (position.x() < labelWidth_) return name;
  const Seconds time = axis_.timeAt(position.x() - labelWidth_), near = axis_.perPixel() * 2;
  const Span* work = slices.at(lane, SliceModel::Track::Work, time, near);
  const Span* send = slices.at(lane, SliceModel::Track::Sends, time);
  QStringList lines;
  for (const Span* span : {work, send}) {
    if (span != nullptr) lines << sliceText(*span, slices.lanes());
  }
  return lines.isEmpty() ? QString() : name + QStringLiteral(": ") + lines.join(QStringLiteral("\n"));
}

bool TimelineView::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QString text = textAt(help->pos());
    text.isEmpty() ? QToolTip::hideText() : QToolTip::showText(help->globalPos(), text, viewport());
    return true;
  }
  return QAbstractScrollArea::viewportEvent(event);
}

void TimelineView::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(viewport());
  painter.fillRect(viewport()->rect(), palette().color(QPalette::Base));
  if (rows_.empty()) {
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(viewport()->rect().adjusted(20, 20, -20, -20), Qt::AlignCenter | Qt::TextWordWrap, placeholder_);
    return;
  }
  painter.setClipRect(0, rulerHeight_, viewport()->width(), viewport()->height() - rulerHeight_);
  const int shift = rulerHeight_ - verticalScrollBar()->value();
  for (const Row& row : rows_) {
    if (row.top + shift > viewport()->height()) break;
    if (row.top + row.height + shift >= rulerHeight_) paintRow(painter, row, row.top + shift);
  }
  painter.setClipping(false);
  paintRuler(painter);
}

void TimelineView::paintRow(QPainter& painter, const Row& row, int top) {
  const Band& band = bands_[static_cast<std::size_t>(row.band)];
  painter.setPen(palette().color(QPalette::Text));
  if (row.lane < 0) {
    QFont bold = font();
    bold.setBold(true);
    painter.setFont(bold);
    painter.drawText(QRect(6, top, viewport()->width() - 12, row.height), Qt::AlignVCenter | Qt::AlignLeft, band.heading);
    painter.setFont(font());
    return;
  }
  const auto lane = static_cast<std::size_t>(row.lane);
  const Lane& info = band.slices->lanes()[lane];
  const bool isSelected = row.band == 0 && selected_ == std::pair(info.pipeline, info.stage);
  if (isSelected) painter.fillRect(0, top, labelWidth_ - 4, row.height, palette().color(QPalette::Highlight));
  if (isSelected) painter.setPen(palette().color(QPalette::HighlightedText));
  painter.drawText(QRect(8, top, labelWidth_ - 12, row.height), Qt::AlignVCenter | Qt::AlignLeft, shortName(info));
  const QRectF area(labelWidth_, top + 1, axis_.width(), row.height - 2);
  const double sends = std::floor(area.height() / 5);
  paintSlices(painter, *band.slices, lane, SliceModel::Track::Work, area.adjusted(0, 0, 0, -sends - 1));
  paintSlices(painter, *band.slices, lane, SliceModel::Track::Sends, area.adjusted(0, area.height() - sends, 0, 0));
}

void TimelineView::paintSlices(QPainter& painter, const SliceModel& slices, std::size_t lane, SliceModel::Track track,
                               const QRectF& area) {
  const Colours& theme = colours(palette());
  const QColor numbers = isDark(palette()) ? QColor(0x14161a) : QColor(Qt::white);
  slices.visible(lane, track, axis_, painted_);
  // One line of pixels, stretched: a slice costs no more than its pixels of that line, however high the row is.
  const double ratio = devicePixelRatioF();
  const int pixels = std::max(1, static_cast<int>(area.width() * ratio));
  if (line_.width() != pixels) line_ = QImage(pixels, 1, QImage::Format_RGB32);
  line_.fill(palette().color(QPalette::Base));
  auto* line = reinterpret_cast<QRgb*>(line_.scanLine(0));
  for (const PaintedSlice& slice : painted_) {
    const int left = std::min(pixels - 1, static_cast<int>(slice.x * ratio)),
              right = static_cast<int>((slice.x + slice.width) * ratio);
    const int gap = slice.width > 4 ? 1 : 0;  // tells wide neighbours apart
    std::fill(line + left, line + std::clamp(right - gap, left + 1, pixels), colourOf(slice.kind, theme).rgb());
  }
  painter.drawImage(area, line_);
  if (track != SliceModel::Track::Work) return;
  painter.setPen(Qt::NoPen);
  painter.setBrush(QBrush(theme.subtle, Qt::BDiagPattern));
  for (const PaintedSlice& slice : painted_) {
    if (slice.kind == Span::Kind::Wait && slice.width > 6)
      painter.drawRect(QRectF(area.left() + slice.x, area.top(), slice.width - 1, area.height()));
  }
  painter.setPen(numbers);
  for (const PaintedSlice& slice : painted_) {
    if (slice.microBatch < 0 || slice.width < kLabelMargin) continue;
    const QStaticText& number = numberText(slice.microBatch);
    const QSizeF size = number.size();
    if (size.width() + kLabelMargin > slice.width) continue;
    painter.drawStaticText(QPointF(area.left() + slice.x + (slice.width - size.width()) / 2, area.center().y() - size.height() / 2), number);
  }
}

const QStaticText& TimelineView::numberText(std::int64_t microBatch) {
  if (numbers_.size() > kMostNumbers) numbers_.clear();
  QStaticText& number = numbers_[microBatch];
  if (number.text().isEmpty()) {
    number.setText(QString::number(microBatch));
    number.setTextFormat(Qt::PlainText);
    number.setPerformanceHint(QStaticText::AggressiveCaching);
    number.prepare({}, font());
  }
  return number;
}

void TimelineView::paintRuler(QPainter& painter) {
  painter.fillRect(0, 0, viewport()->width(), rulerHeight_, palette().color(QPalette::Window));
  painter.setPen(palette().color(QPalette::Mid));
  painter.drawLine(0, rulerHeight_ - 1, viewport()->width(), rulerHeight_ - 1);
  const std::vector<Seconds> ticks = axis_.ticks(fontMetrics().horizontalAdvance(QStringLiteral("1234.5 ms")) + 12);
  const Seconds step = ticks.size() > 1 ? ticks[1] - ticks[0] : axis_.last();
  for (const Seconds tick : ticks) {
    const int x = labelWidth_ + static_cast<int>(std::lround(axis_.xOf(tick)));
    painter.setPen(palette().color(QPalette::Mid));
    painter.drawLine(x, rulerHeight_ - 5, x, rulerHeight_ - 1);
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(QRect(x + 3, 0, 200, rulerHeight_ - 2), Qt::AlignVCenter | Qt::AlignLeft,
                     tickText(tick, step, axis_.last()));
  }
}

QSize TimelineView::sizeHint() const {
  const int height = rows_.empty() ? 120 : rows_.back().top + rows_.back().height;
  return {640, rulerHeight_ + std::min(height, 160) + horizontalScrollBar()->sizeHint().height()};
}

void TimelineView::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  axis_.setWidth(viewport()->width() - labelWidth_);
  updateBars();
}

double TimelineView::cursorX() const {
  const QPoint at = viewport()->mapFromGlobal(QCursor::pos());
  const double x = viewport()->rect().contains(at) ? at.x() - labelWidth_ : axis_.width() / 2;
  return std::clamp(x, 0.0, axis_.width());
}

void TimelineView::zoom(double factor) {
  axis_.zoom(factor, cursorX());
  updateBars();
}

void TimelineView::wheelEvent(QWheelEvent* event) {
  if (event->modifiers().testFlag(Qt::ControlModifier)) {
    const double x = std::clamp(event->position().x() - labelWidth_, 0.0, axis_.width());
    axis_.zoom(std::pow(kZoomStep, event->angleDelta().y() / 120.0), x);
    updateBars();
    event->accept();
  } else if (event->modifiers().testFlag(Qt::ShiftModifier)) {
    axis_.pan(-event->angleDelta().y() / 120.0 * kPanStep);
    updateBars();
    event->accept();
  } else {
    QAbstractScrollArea::wheelEvent(event);
  }
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_W: return zoom(kZoomStep);
    case Qt::Key_S: return zoom(1 / kZoomStep);
    case Qt::Key_A: axis_.pan(-kPanStep); return updateBars();
    case Qt::Key_D: axis_.pan(kPanStep); return updateBars();
    case Qt::Key_F: return fit();
    default: QAbstractScrollArea::keyPressEvent(event);
  }
}

void TimelineView::mousePressEvent(QMouseEvent* event) {
  dragFrom_ = event->pos();
  isDragging_ = false;
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
  if (!dragFrom_) return;
  const QPoint by = event->pos() - *dragFrom_;
  if (!isDragging_ && by.manhattanLength() < 4) return;
  isDragging_ = true;
  viewport()->setCursor(Qt::ClosedHandCursor);
  axis_.pan(-by.x());
  verticalScrollBar()->setValue(verticalScrollBar()->value() - by.y());
  dragFrom_ = event->pos();
  updateBars();
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event) {
  viewport()->unsetCursor();
  const Row* row = rowAt(event->pos().y());
  if (!isDragging_ && row != nullptr && row->lane >= 0) {
    const Lane& lane = bands_[static_cast<std::size_t>(row->band)].slices->lanes()[static_cast<std::size_t>(row->lane)];
    emit stageClicked(row->band, lane.pipeline, lane.stage);
  }
  dragFrom_.reset();
  isDragging_ = false;
}

void TimelineView::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() != QEvent::FontChange) return;
  numbers_.clear();
  layOut();
}

}  // namespace evenkeel::gui
