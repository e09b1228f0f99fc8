// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plot/curve_plot.h"

#include <qcustomplot.h>

#include <QLabel>
#include <QMouseEvent>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/gui/theme/theme.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

constexpr int kFrameMs = 33;
constexpr int kApartMs = 8;  // between the pictures of two plots: a turn of the event loop draws one
constexpr double kMargin = 0.06;  // of the range of values, above and below
constexpr int kMarkHeight = 6;    // pixels above the lower edge
const QString kCrosshairLayer = QStringLiteral("crosshair");

/// Ticks with the texts of the curve's own numbers.
class TextTicker final : public QCPAxisTicker {
 public:
  explicit TextTicker(std::function<QString(double)> text) : text_(std::move(text)) {}

 private:
  QString getTickLabel(double tick, const QLocale&, QChar, int) override { return text_(tick); }
  std::function<QString(double)> text_;
};

/// Ticks of a log axis: 1, 2, 5, 10 ... over a few decades, powers of ten over more.
class LogTicker final : public QCPAxisTicker {
 public:
  explicit LogTicker(std::function<QString(double)> text) : text_(std::move(text)) {}

 private:
  QVector<double> createTickVector(double, const QCPRange& range) override {
    const double decades = std::log10(range.upper / range.lower);
    const int stride = std::max(1, static_cast<int>(decades / 6));
    QVector<double> ticks;
    for (int power = static_cast<int>(std::floor(std::log10(range.lower))); power <= std::log10(range.upper); ++power) {
      if (power % stride != 0) continue;
      for (const double digit : {1.0, 2.0, 5.0}) {
        if (digit == 1 || decades < 2.5) ticks << digit * std::pow(10.0, power);
      }
    }
    return ticks;
  }
  QString getTickLabel(double tick, const QLocale&, QChar, int) override { return text_(tick); }
  std::function<QString(double)> text_;
};

/// Ticks at whole numbers.
class WholeTicker final : public QCPAxisTickerFixed {
 public:
  WholeTicker() {
    setTickStep(1);
    setScaleStrategy(ssMultiples);
  }

 private:
  QString getTickLabel(double tick, const QLocale&, QChar, int) override { return exactText(std::llround(tick)); }
};

void setPoints(QCPGraph* graph, const std::vector<CurvePoint>& points) {
  QVector<QCPGraphData> data;
  data.reserve(static_cast<qsizetype>(points.size()));
  for (const CurvePoint& point : points) data.push_back({point.x, point.y});
  graph->data()->set(data, true);
}

/// Since any plot was drawn; the window's thread only.
QElapsedTimer& sinceAnyFrame() {
  static QElapsedTimer since;
  return since;
}

QColor faint(QColor colour, int alpha) {
  colour.setAlpha(alpha);
  return colour;
}

}  // namespace

CurvePlot::CurvePlot(CurveTitles titles, QWidget* parent)
    : QWidget(parent),
      titles_([&] {
        if (!titles.valueText) titles.valueText = [](double value) { return QString::number(value, 'g', 5); };
        return std::move(titles);
      }()),
      plot_(new QCustomPlot),
      counts_(new QLabel) {
  setAccessibleName(titles_.y);
  setMinimumSize(220, 120);
  counts_->setObjectName(QStringLiteral("curveCounts"));
  counts_->setContentsMargins(8, 0, 8, 0);
  counts_->hide();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(2);
  layout->addWidget(counts_);
  layout->addWidget(plot_, 1);

  plot_->setObjectName(QStringLiteral("curveCanvas"));
  plot_->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
  plot_->axisRect()->setRangeDrag(Qt::Horizontal);
  plot_->axisRect()->setRangeZoom(Qt::Horizontal);
  plot_->setPlottingHint(QCP::phFastPolylines);
  plot_->setNoAntialiasingOnDrag(true);
  plot_->setMouseTracking(true);
  plot_->installEventFilter(this);
  makeItems();
  applyColours();

  frame_.setSingleShot(true);
  connect(&frame_, &QTimer::timeout, this, [this] {
    const qint64 since = sinceAnyFrame().isValid() ? sinceAnyFrame().elapsed() : kApartMs;
    since < kApartMs ? frame_.start(static_cast<int>(kApartMs - since)) : draw();
  });
  connect(plot_, &QCustomPlot::beforeReplot, this, &CurvePlot::prepareFrame);
  connect(plot_->xAxis, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this, [this](const QCPRange& range) {
    if (isPreparing_) return;
    isFollowing_ = points().empty() || (range.lower <= points().front().x && range.upper >= points().back().x);
    schedule();
  });
}

CurvePlot::~CurvePlot() = default;

void CurvePlot::makeItems() {
  plot_->xAxis->setLabel(titles_.x);
  plot_->xAxis->setTicker(QSharedPointer<WholeTicker>::create());
  plot_->xAxis->setSubTicks(false);
  plot_->yAxis->setSubTicks(false);

  rawGraph_ = plot_->addGraph();
  smoothGraph_ = plot_->addGraph();
  otherGraph_ = plot_->addGraph();
  marks_ = plot_->addGraph();
  marks_->setLineStyle(QCPGraph::lsNone);
  rawGraph_->setAntialiased(true);
  smoothGraph_->setAntialiased(true);

  referenceText_ = new QCPItemText(plot_);
  referenceText_->setVisible(false);
  referenceText_->position->setTypeX(QCPItemPosition::ptAxisRectRatio);
  referenceText_->position->setTypeY(QCPItemPosition::ptPlotCoords);
  referenceText_->setPositionAlignment(Qt::AlignLeft | Qt::AlignBottom);
  referenceLine_ = new QCPItemStraightLine(plot_);  // above the text's background
  referenceLine_->setVisible(false);
  emptyText_ = new QCPItemText(plot_);
  emptyText_->position->setType(QCPItemPosition::ptAxisRectRatio);
  emptyText_->position->setCoords(0.5, 0.5);
  emptyText_->setText(tr("No step yet"));

  // Redrawn alone at each move of the mouse: a quarter of a millisecond.
  plot_->addLayer(kCrosshairLayer, plot_->layer(QStringLiteral("main")), QCustomPlot::limAbove);
  plot_->layer(kCrosshairLayer)->setMode(QCPLayer::lmBuffered);
  crosshair_ = new QCPItemLine(plot_);
  crosshair_->setLayer(kCrosshairLayer);
  for (QCPItemPosition* end : {crosshair_->start, crosshair_->end}) {
    end->setTypeX(QCPItemPosition::ptPlotCoords);
    end->setTypeY(QCPItemPosition::ptAxisRectRatio);
  }
  crosshairText_ = new QCPItemText(plot_);
  crosshairText_->setLayer(kCrosshairLayer);
  crosshairText_->position->setTypeX(QCPItemPosition::ptPlotCoords);
  crosshairText_->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
  crosshairText_->setPadding(QMargins(6, 2, 6, 2));
  crosshair_->setVisible(false);
  crosshairText_->setVisible(false);
}

void CurvePlot::applyColours() {
  const Colours& c = colours(palette());
  const QColor text = palette().color(QPalette::WindowText);
  const bool dark = isDark(palette());
  plot_->setBackground(palette().color(QPalette::Base));
  for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) {
    axis->setBasePen(QPen(c.subtle));
    axis->setTickPen(QPen(c.subtle));
    axis->setTickLabelColor(c.subtle);
    axis->setLabelColor(c.subtle);
    axis->setTickLabelFont(font());
    axis->setLabelFont(font());
    axis->grid()->setPen(QPen(c.grid, 1, Qt::SolidLine));
    axis->grid()->setZeroLinePen(QPen(c.grid));
  }
  plot_->xAxis->grid()->setVisible(false);
  rawGraph_->setPen(QPen(faint(c.accent, dark ? 110 : 90), 1));
  smoothGraph_->setPen(QPen(c.accent, 2));
  otherGraph_->setPen(QPen(c.optimizer, 2));
  marks_->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCross, QPen(c.error, 2), Qt::NoBrush, 8));
  referenceLine_->setPen(QPen(text, 1.5, Qt::DashLine));
  referenceText_->setColor(text);
  referenceText_->setFont(font());
  referenceText_->setBrush(faint(palette().color(QPalette::Base), 200));
  emptyText_->setColor(c.subtle);
  emptyText_->setFont(font());
  crosshair_->setPen(QPen(c.subtle, 1));
  crosshairText_->setColor(text);
  crosshairText_->setFont(font());
  crosshairText_->setBrush(palette().color(QPalette::Window));
  crosshairText_->setPen(QPen(c.grid));
  QPalette warning;
  warning.setColor(QPalette::WindowText, c.warning);
  counts_->setPalette(warning);
}

void CurvePlot::append(double x, double y) {
  raw_.append({x, y});
  smooth_.append({x, smoothing_.next(y)});
  if (!std::isfinite(y)) notFinite_.push_back(x);
  else if (y <= 0) notPositive_.push_back(x);
  schedule();
}

void CurvePlot::appendOther(double x, double y) {
  other_.append({x, y});
  schedule();
}

void CurvePlot::clear() {
  raw_.clear();
  other_.clear();
  smooth_.clear();
  notFinite_.clear();
  notPositive_.clear();
  smoothing_ = Smoothing(smoothing_.weight());
  isFollowing_ = true;
  hideCrosshair();
  schedule();
}

void CurvePlot::setSmoothing(double weight) {
  Smoothing smoothing(weight);  // a local one: it stays in registers
  smooth_.assign(raw_, [&smoothing](double value) { return smoothing.next(value); });
  smoothing_ = smoothing;
  schedule();
}

void CurvePlot::setLogAxis(bool isLog) {
  isLog_ = isLog;
  plot_->yAxis->setScaleType(isLog ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
  schedule();
}

void CurvePlot::setReference(std::optional<double> y, const QString& name) {
  reference_ = y;
  referenceText_->setText(name);
  schedule();
}

void CurvePlot::showAll() {
  isFollowing_ = true;
  schedule();
}

void CurvePlot::setVisibleRange(double first, double last) { plot_->xAxis->setRange(first, last); }

QString CurvePlot::crosshairText() const { return crosshairText_->visible() ? crosshairText_->text() : QString(); }

void CurvePlot::schedule() {
  if (frame_.isActive()) return;
  const qint64 since = sinceFrame_.isValid() ? sinceFrame_.elapsed() : kFrameMs;
  frame_.start(static_cast<int>(std::clamp<qint64>(kFrameMs - since, 0, kFrameMs)));
}

void CurvePlot::draw() {
  frame_.stop();
  if (isVisible()) plot_->replot();
  else prepareFrame();
  sinceFrame_.restart();
  sinceAnyFrame().restart();
}

void CurvePlot::prepareFrame() {
  isPreparing_ = true;
  if (isFollowing_ && !points().empty()) {
    const double least = points().front().x, most = points().back().x;
    plot_->xAxis->setRange(most > least ? least : least - 1, most > least ? most : most + 1);
  }
  const QCPRange view = plot_->xAxis->range();
  const int columns = std::max(1, plot_->axisRect()->width());
  const double above = isLog_ ? 0 : -std::numeric_limits<double>::infinity();
  drawn_ = envelope(raw_, view.lower, view.upper, columns, above);
  const bool isSmoothed = smoothing_.weight() > 0;
  setPoints(rawGraph_, drawn_);
  rawGraph_->setVisible(isSmoothed);
  setPoints(smoothGraph_, isSmoothed ? envelope(smooth_, view.lower, view.upper, columns, above) : drawn_);
  // A lone point between gaps has no line: while there is room, points show as dots.
  const bool isSparse = drawn_.size() * 12 < static_cast<std::size_t>(columns);
  smoothGraph_->setScatterStyle(isSparse ? QCPScatterStyle(QCPScatterStyle::ssDisc, 5) : QCPScatterStyle::ssNone);
  otherDrawn_ = envelope(other_, view.lower, view.upper, columns, above);
  setPoints(otherGraph_, otherDrawn_);
  const bool isOtherSparse = otherDrawn_.size() * 12 < static_cast<std::size_t>(columns);
  otherGraph_->setScatterStyle(isOtherSparse ? QCPScatterStyle(QCPScatterStyle::ssDiamond, otherGraph_->pen(), otherGraph_->pen().color(), 8)
                                             : QCPScatterStyle::ssNone);
  fitValues();
  drawMarks(view.lower, view.upper, columns);
  emptyText_->setVisible(points().empty());
  for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) axis->setTickLabels(!points().empty());
  showCounts();
  isPreparing_ = false;
}

void CurvePlot::fitValues() {
  double least = HUGE_VAL, most = -HUGE_VAL;
  for (const std::vector<CurvePoint>* const points : {&drawn_, &otherDrawn_}) {
    for (const CurvePoint& point : *points) {
      if (std::isnan(point.y)) continue;
      least = std::min(least, point.y);
      most = std::max(most, point.y);
    }
  }
  const bool showsReference = reference_ && !points().empty() && (!isLog_ || *reference_ > 0);
  if (showsReference) {
    least = std::min(least, *reference_);
    most = std::max(most, *reference_);
  }
  if (!(least <= most)) least = isLog_ ? 1 : 0, most = isLog_ ? 10 : 1;
  if (isLog_) {
    const double factor = std::max(std::pow(most / least, kMargin), 1.02);
    plot_->yAxis->setRange(least / factor, most * factor);
  } else {
    const double margin = most > least ? kMargin * (most - least) : std::max(std::abs(most) * kMargin, 1e-9);
    plot_->yAxis->setRange(least - margin, most + margin);
  }
  chooseTicks(least, most);
  referenceLine_->setVisible(showsReference);
  referenceText_->setVisible(showsReference && !referenceText_->text().isEmpty());
  if (!showsReference) return;
  referenceLine_->point1->setCoords(0, *reference_);
  referenceLine_->point2->setCoords(1, *reference_);
  // below the line where it lies at the upper edge of the view
  const bool isHigh =
      isLog_ ? std::log(*reference_ / least) > 0.85 * std::log(most / least) : *reference_ - least > 0.85 * (most - least);
  referenceText_->setPositionAlignment(Qt::AlignLeft | (isHigh ? Qt::AlignTop : Qt::AlignBottom));
  referenceText_->position->setCoords(0.01, *reference_);
}

void CurvePlot::chooseTicks(double least, double most) {
  // On a short log axis ticks at equal distances say more.
  if (isLog_ && most / least > 6) plot_->yAxis->setTicker(QSharedPointer<LogTicker>::create(titles_.valueText));
  else plot_->yAxis->setTicker(QSharedPointer<TextTicker>::create(titles_.valueText));
}

void CurvePlot::drawMarks(double first, double last, int columns) {
  std::vector<CurvePoint> marks;
  const double y = plot_->yAxis->pixelToCoord(plot_->axisRect()->bottom() - kMarkHeight);
  const auto addOneAColumn = [&](const std::vector<double>& places) {
    const double width = (last - first) / columns;
    auto at = std::ranges::lower_bound(places, first);
    while (at != places.end() && *at <= last) {
      marks.push_back({*at, y});
      at = std::lower_bound(at + 1, places.end(), *at + width);
    }
  };
  addOneAColumn(notFinite_);
  if (isLog_) addOneAColumn(notPositive_);
  std::ranges::sort(marks, {}, &CurvePoint::x);
  setPoints(marks_, marks);
}

void CurvePlot::showCounts() {
  QStringList parts;
  const auto number = [](std::size_t count) { return exactText(static_cast<std::int64_t>(count)); };
  if (notFiniteCount() > 0) parts << tr("NaN or infinite: %1").arg(number(notFiniteCount()));
  if (hiddenByLogCount() > 0) parts << tr("≤ 0, no place on a log axis: %1").arg(number(hiddenByLogCount()));
  const QString text = parts.isEmpty() ? QString() : tr("⚠ %1 (marked ×)").arg(parts.join(QStringLiteral(" · ")));
  if (counts_->text() == text) return;
  counts_->setText(text);
  counts_->setVisible(!text.isEmpty());
}

void CurvePlot::moveCrosshair(double pixel) {
  if (points().empty()) return;
  const double x = plot_->xAxis->pixelToCoord(pixel);
  auto after = std::ranges::lower_bound(points(), x, {}, &CurvePoint::x);
  if (after == points().end() || (after != points().begin() && x - (after - 1)->x < after->x - x)) --after;
  const auto index = static_cast<std::size_t>(after - points().begin());
  QString text = QStringLiteral("%1 %2   %3 %4")
                     .arg(titles_.x, exactText(std::llround(after->x)), titles_.y,
                          std::isfinite(after->y) ? titles_.valueText(after->y) : QString::number(after->y));
  if (smoothing_.weight() > 0 && std::isfinite(smooth_.points()[index].y))
    text += tr("   smoothed %1").arg(titles_.valueText(smooth_.points()[index].y));
  crosshairText_->setText(text);
  crosshair_->start->setCoords(after->x, 0);
  crosshair_->end->setCoords(after->x, 1);
  const bool isRight = plot_->xAxis->coordToPixel(after->x) > plot_->axisRect()->center().x();
  crosshairText_->setPositionAlignment((isRight ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignTop);
  crosshairText_->position->setCoords(after->x, 0.02);
  crosshair_->setVisible(true);
  crosshairText_->setVisible(true);
  plot_->layer(kCrosshairLayer)->replot();
}

void CurvePlot::hideCrosshair() {
  crosshair_->setVisible(false);
  crosshairText_->setVisible(false);
  plot_->layer(kCrosshairLayer)->replot();
}

bool CurvePlot::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::MouseMove) moveCrosshair(static_cast<QMouseEvent*>(event)->position().x());
  else if (event->type() == QEvent::Leave) hideCrosshair();
  else if (event->type() == QEvent::MouseButtonDblClick) showAll();
  return QWidget::eventFilter(watched, event);
}

void CurvePlot::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange && event->type() != QEvent::FontChange) return;
  applyColours();
  schedule();
}

}  // namespace evenkeel::gui
