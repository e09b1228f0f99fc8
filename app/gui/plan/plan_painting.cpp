// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/plan_painting.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "app/gui/theme/theme.h"

namespace evenkeel::gui {
namespace {

constexpr int kGap = 4;         // between the blocks of a layer
constexpr int kBlockCount = 4;  // embedding, attention, MLP, head

int blockOf(Op op) {
  if (op == Op::Embedding) return 0;
  return op < Op::Norm2 ? 1 : op < Op::FinalNorm ? 2 : 3;
}

}  // namespace

void paintMemoryBar(QPainter& painter, const QRectF& rect, const MemoryUse& memory, const QPalette& palette) {
  const Colours& theme = colours(palette);
  const double part = std::clamp(
      static_cast<double>(memory.total().value) / static_cast<double>(std::max<std::int64_t>(1, memory.capacity.value)), 0.0,
      1.0);
  const Fullness level = fullness(memory);
  const QColor colour = level == Fullness::Full ? theme.error : level == Fullness::Tight ? theme.warning : theme.accent;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme.grid);
  painter.drawRoundedRect(rect, 2, 2);
  painter.setBrush(colour);
  painter.setClipRect(QRectF(rect.left(), rect.top(), rect.width() * part, rect.height()));
  painter.drawRoundedRect(rect, 2, 2);
  painter.restore();
}

void paintRecomputeStrip(QPainter& painter, const QRectF& rect, const StageFacts& stage, const QPalette& palette) {
  const Colours& theme = colours(palette);
  const double cell = (rect.width() - kGap * (kBlockCount - 1)) / kOpCount;
  painter.save();
  for (int op = 0; op < kOpCount; ++op) {
    const OpShare& share = stage.ops[static_cast<std::size_t>(op)];
    if (share.held == 0) continue;
    const double x = rect.left() + op * cell + blockOf(static_cast<Op>(op)) * kGap;
    const QRectF box(std::round(x), rect.top(), std::max(2.0, std::floor(cell) - 2), rect.height());
    const double height = box.height() * share.recomputed / share.held;
    painter.fillRect(QRectF(box.left(), box.bottom() - height, box.width(), height), theme.recompute);
    painter.setPen(QPen(share.recomputed > 0 ? theme.recompute.darker(125) : palette.color(QPalette::Dark), 1));
    if (isDark(palette) && share.recomputed == 0) painter.setPen(QPen(theme.link, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
  }
  painter.restore();
}

int recomputeStripWidth(int cell) { return kOpCount * cell + kGap * (kBlockCount - 1); }

}  // namespace evenkeel::gui
