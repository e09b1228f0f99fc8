// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/timeline/slice_text.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("SliceText", text); }

QString range(Seconds start, Seconds end) {
  const bool isLong = end.value >= 10, isShort = end.value < 1e-3;
  const double unit = isLong ? 1 : isShort ? 1e-6 : 1e-3;
  const double length = std::max(1e-12, (end - start).value / unit);
  const int digits = std::clamp(1 - static_cast<int>(std::floor(std::log10(length))), 0, 6);
  return QStringLiteral("%1–%2\u2009%3")
      .arg(start.value / unit, 0, 'f', digits)
      .arg(end.value / unit, 0, 'f', digits)
      .arg(isLong    ? QStringLiteral("s")
           : isShort ? QStringLiteral("µs")
                     : QStringLiteral("ms"));
}

}  // namespace

QString tickText(Seconds tick, Seconds step, Seconds last) {
  const bool isLong = last.value >= 1, isShort = last.value < 1e-3;
  const double unit = isLong ? 1 : isShort ? 1e-6 : 1e-3;
  const int digits = std::clamp(-static_cast<int>(std::floor(std::log10(step.value / unit) + 1e-9)), 0, 9);
  const QString name = isLong ? QStringLiteral("s") : isShort ? QStringLiteral("µs") : QStringLiteral("ms");
  return QString::number(tick.value / unit, 'f', digits) + QChar(0x2009) + name;
}

QString kindText(Span::Kind kind) {
  switch (kind) {
    case Span::Kind::Forward: return tr("forward");
    case Span::Kind::Backward: return tr("backward");
    case Span::Kind::Send: return tr("send");
    case Span::Kind::Wait: return tr("waiting");
    case Span::Kind::Sync: return tr("gradient sync");
    case Span::Kind::Optimizer: return tr("optimizer");
  }
  return {};
}

QString sliceText(const Span& span, const std::vector<Lane>& lanes) {
  if (span.kind == Span::Kind::Wait) {
    const QString length = timeText(span.end - span.start);
    if (span.waitsForLane < 0) return tr("waits %1").arg(length);
    return tr("waits %1 for %2").arg(length, QString::fromStdString(lanes[static_cast<std::size_t>(span.waitsForLane)].name));
  }
  const QString when = range(span.start, span.end);
  if (span.microBatch < 0) return QStringLiteral("%1, %2").arg(kindText(span.kind), when);
  return tr("micro-batch %1 %2, %3").arg(span.microBatch).arg(kindText(span.kind), when);
}

}  // namespace evenkeel::gui
