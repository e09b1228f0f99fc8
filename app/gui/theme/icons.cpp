// SPDX-License-Identifier: GPL-3.0-or-later
// Our icons: strokes on a 24 x 24 grid, drawn in the palette's text colour when they are needed.
#include <QPainter>
#include <QPainterPath>
#include <QPixmap>
#include <map>

#include "app/gui/theme/theme.h"

namespace evenkeel::gui {
namespace {

void line(QPainter& p, double x1, double y1, double x2, double y2) { p.drawLine(QPointF(x1, y1), QPointF(x2, y2)); }
void box(QPainter& p, double x, double y, double w, double h, double radius = 1.5) { p.drawRoundedRect(QRectF(x, y, w, h), radius, radius); }
void filled(QPainter& p, const QPolygonF& polygon) {
  p.save();
  p.setBrush(p.pen().color());
  p.drawPolygon(polygon);
  p.restore();
}

void machine(QPainter& p, double x, double y) {
  box(p, x, y, 8, 5);
  line(p, x + 2, y + 2.5, x + 2.2, y + 2.5);
}
void magnifier(QPainter& p) {
  p.drawEllipse(QPointF(10, 10), 6, 6);
  line(p, 14.5, 14.5, 20, 20);
}
void curve(QPainter& p, double y1, double y2) {
  QPainterPath path(QPointF(4, y1));
  path.cubicTo(QPointF(9, y2), QPointF(13, y2), QPointF(20, y2));
  p.drawPath(path);
}
void turn(QPainter& p, bool left) {
  p.save();
  if (!left) {
    p.translate(24, 0);
    p.scale(-1, 1);
  }
  QPainterPath path(QPointF(5, 9));
  path.lineTo(14, 9);
  path.cubicTo(QPointF(21, 9), QPointF(21, 18), QPointF(14, 18));
  path.lineTo(9, 18);
  p.drawPath(path);
  line(p, 5, 9, 9, 5);
  line(p, 5, 9, 9, 13);
  p.restore();
}

using Draw = void (*)(QPainter&);

const std::map<std::string_view, Draw>& drawings() {
  static const std::map<std::string_view, Draw> all = {
      {"start", [](QPainter& p) { p.drawPolyline(QPolygonF{{4, 12}, {12, 5}, {20, 12}}); p.drawPolyline(QPolygonF{{6.5, 11}, {6.5, 19}, {17.5, 19}, {17.5, 11}}); }},
      {"cluster", [](QPainter& p) { machine(p, 3, 4); machine(p, 13, 4); machine(p, 8, 15); line(p, 7, 9, 11, 15); line(p, 17, 9, 13, 15); }},
      {"model", [](QPainter& p) { for (const double y : {5.0, 10.5, 16.0}) box(p, 5, y, 14, 3.5); }},
      {"plan", [](QPainter& p) { box(p, 3, 5, 9, 4); box(p, 13, 5, 5, 4); box(p, 6, 11, 6, 4); box(p, 13, 11, 8, 4); line(p, 3, 19, 21, 19); }},
      {"compare", [](QPainter& p) { line(p, 4, 20, 20, 20); box(p, 5, 11, 3, 9, 0.5); box(p, 10.5, 6, 3, 14, 0.5); box(p, 16, 14, 3, 6, 0.5); }},
      {"run", [](QPainter& p) { line(p, 4, 4, 4, 20); line(p, 4, 20, 20, 20); curve(p, 6, 17); }},
      {"undo", [](QPainter& p) { turn(p, true); }},
      {"redo", [](QPainter& p) { turn(p, false); }},
      {"machine", [](QPainter& p) { box(p, 4, 6, 16, 12); for (const double x : {7.0, 11.0, 15.0}) box(p, x, 10, 2.5, 4, 0.5); }},
      {"switch", [](QPainter& p) { box(p, 3, 9, 18, 6); for (const double x : {7.0, 12.0, 17.0}) line(p, x, 12, x + 0.2, 12); }},
      {"link", [](QPainter& p) { p.drawEllipse(QPointF(6, 17), 2.5, 2.5); p.drawEllipse(QPointF(18, 7), 2.5, 2.5); line(p, 8, 15.5, 16, 8.5); }},
      {"zoom-in", [](QPainter& p) { magnifier(p); line(p, 7, 10, 13, 10); line(p, 10, 7, 10, 13); }},
      {"zoom-out", [](QPainter& p) { magnifier(p); line(p, 7, 10, 13, 10); }},
      {"search", [](QPainter& p) { magnifier(p); }},
      {"fit", [](QPainter& p) { for (const int a : {0, 90, 180, 270}) { p.save(); p.translate(12, 12); p.rotate(a); p.drawPolyline(QPolygonF{{-8, -3}, {-8, -8}, {-3, -8}}); p.restore(); } }},
      {"arrange", [](QPainter& p) { for (const double x : {4.0, 14.0}) for (const double y : {4.0, 14.0}) box(p, x, y, 6, 6); }},
      {"stop", [](QPainter& p) { filled(p, QPolygonF{{7, 7}, {17, 7}, {17, 17}, {7, 17}}); }},
      {"launch", [](QPainter& p) { filled(p, QPolygonF{{8, 5}, {19, 12}, {8, 19}}); }},
      {"open", [](QPainter& p) { p.drawPolyline(QPolygonF{{4, 18}, {4, 6}, {9, 6}, {11, 8.5}, {19, 8.5}, {19, 11}}); p.drawPolygon(QPolygonF{{4, 18}, {7, 11}, {21, 11}, {18, 18}}); }},
      {"save", [](QPainter& p) { box(p, 4, 4, 16, 16); box(p, 8, 4, 8, 5, 0.5); box(p, 7, 13, 10, 7, 0.5); }},
      {"new", [](QPainter& p) { p.drawPolygon(QPolygonF{{6, 3}, {14, 3}, {18, 7}, {18, 21}, {6, 21}}); p.drawPolyline(QPolygonF{{14, 3}, {14, 7}, {18, 7}}); }},
      {"delete", [](QPainter& p) { line(p, 5, 7, 19, 7); p.drawPolyline(QPolygonF{{7, 7}, {8, 20}, {16, 20}, {17, 7}}); line(p, 10, 4, 14, 4); }},
      {"duplicate", [](QPainter& p) { box(p, 4, 4, 11, 11); p.drawPolyline(QPolygonF{{9, 18}, {9, 20}, {20, 20}, {20, 9}, {18, 9}}); }},
  };
  return all;
}

QPixmap drawn(Draw draw, int size, const QColor& colour) {
  QPixmap pixmap(size, size);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.scale(size / 24.0, size / 24.0);
  painter.setPen(QPen(colour, 1.6, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  draw(painter);
  return pixmap;
}

}  // namespace

QIcon icon(std::string_view name, const QPalette& palette) {
  const auto found = drawings().find(name);
  Q_ASSERT(found != drawings().end());
  QIcon result;
  for (const int size : {16, 24, 32, 48, 64}) {
    result.addPixmap(drawn(found->second, size, palette.color(QPalette::WindowText)), QIcon::Normal);
    result.addPixmap(drawn(found->second, size, palette.color(QPalette::Disabled, QPalette::WindowText)), QIcon::Disabled);
  }
  return result;
}

}  // namespace evenkeel::gui
