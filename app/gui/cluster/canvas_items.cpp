// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/canvas_items.h"

#include <QApplication>
#include <QFontMetricsF>
#include <QPainter>
#include <QStyleOptionGraphicsItem>
#include <QWidget>
#include <algorithm>

#include "app/gui/cluster/placement.h"
#include "app/gui/theme/theme.h"

namespace evenkeel::gui {
namespace {

constexpr double kPadding = 10, kRadius = 5, kSquare = 9, kSquareStep = 12, kSquaresTop = 78;
constexpr double kRoundZoom = 0.6;  // below, the rounding of a corner is less than three pixels, and half of the time of a frame
constexpr int kMaxSquares = 13;  // what fits a card's width
constexpr double kHitWidth = 10;

const QPalette& paletteOf(const QWidget* widget) {
  static QPalette application;
  if (widget != nullptr) return widget->palette();
  application = QApplication::palette();
  return application;
}

double zoomOf(const QPainter& painter) { return QStyleOptionGraphicsItem::levelOfDetailFromTransform(painter.worldTransform()); }

QColor mixed(const QColor& a, const QColor& b, double share) {
  const auto mix = [&](int x, int y) { return static_cast<int>(x * (1 - share) + y * share); };
  return {mix(a.red(), b.red()), mix(a.green(), b.green()), mix(a.blue(), b.blue())};
}

/// Fonts of the cards; pixel sizes do not change with the scheme.
const QFont& titleFont() {
  static const QFont font = canvasFont(13, true);
  return font;
}
const QFont& plainFont() {
  static const QFont font = canvasFont(12);
  return font;
}
const QFont& smallFont() {
  static const QFont font = canvasFont(11);
  return font;
}

QStaticText laidOut(const QString& text, const QFont& font, double width) {
  QStaticText result(QFontMetricsF(font).elidedText(text, Qt::ElideMiddle, width));
  result.setTextFormat(Qt::PlainText);
  result.setPerformanceHint(QStaticText::AggressiveCaching);
  result.prepare({}, font);
  return result;
}

/// The text with its base line at `baseline`.
void drawLaidOut(QPainter& painter, const QFont& font, const QColor& colour, QPointF baseline, const QStaticText& text) {
  painter.setFont(font);
  painter.setPen(colour);
  painter.drawStaticText(QPointF(baseline.x(), baseline.y() - QFontMetricsF(font).ascent()), text);
}

/// The frame of a box: a card in the base colour with a coloured border, and a ring around it when it is selected.
void drawFrame(QPainter& painter, const QPalette& palette, QSizeF size, const QColor& border, bool marked) {
  const QRectF card(QPointF(0, 0), size);
  if (marked) {
    painter.setPen(QPen(colours(palette).accent, 2.5));
    painter.setBrush(mixed(palette.color(QPalette::Base), colours(palette).accent, 0.12));
    painter.drawRoundedRect(card.adjusted(-1.5, -1.5, 1.5, 1.5), kRadius + 1, kRadius + 1);
    painter.setBrush(Qt::NoBrush);
  } else {
    painter.setBrush(palette.color(QPalette::Base));
  }
  const QRectF frame = card.adjusted(0.75, 0.75, -0.75, -0.75);
  painter.setPen(QPen(border, 1.5));
  if (zoomOf(painter) >= kRoundZoom) {
    painter.drawRoundedRect(frame, kRadius, kRadius);
  } else {
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.drawRect(frame);
  }
}

}  // namespace

QFont canvasFont(int pixels, bool bold) {
  QFont font = QApplication::font();
  font.setPixelSize(pixels);
  font.setBold(bold);
  return font;
}

bool BoxItem::moveTo(QPointF topLeft) {
  if (pos() == topLeft) return false;
  setPos(topLeft);
  for (LinkItem* link : links) link->follow();
  return true;
}

bool BoxItem::setMarked(bool marked) {
  if (isMarked_ == marked) return false;
  isMarked_ = marked;
  update();
  return true;
}

void MachineItem::setContent(Content content) {
  if (content == content_) return;
  content_ = std::move(content);
  const double width = kMachineWidth - 2 * kPadding;
  const auto& groups = content_.groups;
  title_ = laidOut(QString::fromStdString(name), titleFont(), width);
  first_ = laidOut(groups.empty() ? QString() : groups[0].text, plainFont(), width);
  isSecondSmall_ = groups.size() < 2;
  if (isSecondSmall_) second_ = laidOut(content_.detail, smallFont(), width);
  else
    second_ =
        laidOut(groups.size() == 2 ? groups[1].text : QStringLiteral("%1 + %2 more").arg(groups[1].text).arg(groups.size() - 2),
                plainFont(), width);
  int total = 0;
  for (const Group& group : groups) total += group.count;
  squares_ = total > kMaxSquares ? kMaxSquares - 3 : total;
  more_ = laidOut(total > squares_ ? QStringLiteral("+%1").arg(total - squares_) : QString(), smallFont(), width);
  QString tip = QStringLiteral("<b>%1</b>").arg(QString::fromStdString(name).toHtmlEscaped());
  for (const Group& group : groups) tip += QStringLiteral("<br>") + group.text.toHtmlEscaped();
  setToolTip(tip + QStringLiteral("<br>") + content_.detail.toHtmlEscaped());
  update();
}

QSizeF MachineItem::size() const { return {kMachineWidth, kMachineHeight}; }

QColor MachineItem::border(const QPalette& palette) const {
  return content_.groups.empty() ? palette.color(QPalette::Mid) : deviceColour(content_.groups.front().type);
}

BoxItem::Block MachineItem::block(const QPalette& palette) const {
  if (isMarked_) return {colours(palette).accent, colours(palette).accent};
  const QColor edge = border(palette);
  return {edge, mixed(palette.color(QPalette::Base), edge, 0.45)};
}

void MachineItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget* widget) {
  const QPalette& palette = paletteOf(widget);
  painter->setRenderHint(QPainter::Antialiasing, true);
  drawFrame(*painter, palette, size(), border(palette), isMarked_);
  const QColor text = palette.color(QPalette::Text), subtle = colours(palette).subtle;
  drawLaidOut(*painter, titleFont(), text, {kPadding, 21}, title_);
  drawLaidOut(*painter, plainFont(), text, {kPadding, 41}, first_);
  drawLaidOut(*painter, isSecondSmall_ ? smallFont() : plainFont(), isSecondSmall_ ? subtle : text, {kPadding, 60}, second_);
  paintDevices(*painter, subtle);
}

void MachineItem::paintDevices(QPainter& painter, const QColor& text) const {
  painter.setRenderHint(QPainter::Antialiasing, false);
  int shown = 0;
  for (const Group& group : content_.groups) {
    const QColor colour = deviceColour(group.type);
    for (int i = 0; i < group.count && shown < squares_; ++i) {
      painter.fillRect(QRectF(kPadding + shown++ * kSquareStep, kSquaresTop, kSquare, kSquare), colour);
    }
  }
  if (!more_.text().isEmpty())
    drawLaidOut(painter, smallFont(), text, {kPadding + shown * kSquareStep + 2, kSquaresTop + kSquare}, more_);
}

void SwitchItem::setDetail(const QString& detail) {
  if (detail == detail_) return;
  detail_ = detail;
  title_ = laidOut(QString::fromStdString(name), plainFont(), kSwitchWidth - 2 * kPadding);
  second_ = laidOut(detail, smallFont(), kSwitchWidth - 2 * kPadding);
  setToolTip(QStringLiteral("<b>%1</b><br>%2").arg(QString::fromStdString(name).toHtmlEscaped(), detail.toHtmlEscaped()));
  update();
}

QSizeF SwitchItem::size() const { return {kSwitchWidth, kSwitchHeight}; }

BoxItem::Block SwitchItem::block(const QPalette& palette) const {
  const QColor colour = isMarked_ ? colours(palette).accent : colours(palette).link;
  return {colour, colour};
}

void SwitchItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget* widget) {
  const QPalette& palette = paletteOf(widget);
  painter->setRenderHint(QPainter::Antialiasing, true);
  drawFrame(*painter, palette, size(), colours(palette).link, isMarked_);
  drawLaidOut(*painter, plainFont(), palette.color(QPalette::Text), {kPadding, 17}, title_);
  drawLaidOut(*painter, smallFont(), colours(palette).subtle, {kPadding, 32}, second_);
}

LinkItem::LinkItem(std::string theKey, BoxItem& theFirst, BoxItem& theSecond)
    : key(std::move(theKey)), first(theFirst), second(theSecond) {
  setZValue(-1);  // below the boxes
  first.links.push_back(this);
  second.links.push_back(this);
  follow();
}

void LinkItem::setContent(const QString& label, double width) {
  if (label == label_ && width == width_) return;
  prepareGeometryChange();
  label_ = label;
  width_ = width;
  const QFontMetricsF metrics(smallFont());
  labelSize_ = label.isEmpty() ? QSizeF() : QSizeF(metrics.horizontalAdvance(label) + 8, metrics.height() + 2);
  labelText_ = laidOut(label, smallFont(), labelSize_.width());
}

bool LinkItem::setMarked(bool marked) {
  if (isMarked_ == marked) return false;
  isMarked_ = marked;
  update();
  return true;
}

void LinkItem::follow() {
  prepareGeometryChange();
  line_ = QLineF(first.centre(), second.centre());
}

QRectF LinkItem::boundingRect() const {
  const double margin = std::max(kHitWidth, width_ + 2) / 2;
  QRectF bounds = QRectF(line_.p1(), line_.p2()).normalized().adjusted(-margin, -margin, margin, margin);
  QRectF label(QPointF(0, 0), labelSize_);
  label.moveCenter(line_.center());
  return bounds | label;
}

QPainterPath LinkItem::shape() const {
  QPainterPath line(line_.p1());
  line.lineTo(line_.p2());
  QPainterPathStroker stroker;
  stroker.setWidth(kHitWidth);
  return stroker.createStroke(line);
}

void LinkItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget* widget) {
  const QPalette& palette = paletteOf(widget);
  const QColor colour = isMarked_ ? colours(palette).accent : colours(palette).link;
  QPen pen(colour, isMarked_ ? width_ + 1.5 : width_);
  const bool isFar = zoomOf(*painter) < kRoundZoom;  // as thin as in the overview: smooth edges of a thousand lines take a frame's time
  if (isFar) {
    pen.setWidthF(isMarked_ ? 2 : 1);
    pen.setCosmetic(true);
  }
  painter->setRenderHint(QPainter::Antialiasing, !isFar);
  painter->setPen(pen);
  painter->drawLine(line_);
  if (label_.isEmpty() || zoomOf(*painter) < kLinkLabelZoom) return;
  QRectF label(QPointF(0, 0), labelSize_);
  label.moveCenter(line_.center());
  painter->fillRect(label, colours(palette).canvas);
  painter->setFont(smallFont());
  painter->setPen(isMarked_ ? colour : palette.color(QPalette::Text));
  painter->drawStaticText(label.topLeft() + QPointF(4, 1), labelText_);
}

}  // namespace evenkeel::gui
