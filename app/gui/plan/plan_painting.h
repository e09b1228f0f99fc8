// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPalette>
#include <QRect>

#include "app/gui/plan/plan_facts.h"

class QPainter;

namespace evenkeel::gui {

/// A bar of how much memory is used, in the colour of its fullness.
void paintMemoryBar(QPainter& painter, const QRectF& rect, const MemoryUse& memory, const QPalette& palette);

/// A cell a kind of op: filled from below by the part of the stage's units in which it is recomputed, outlined where it is kept,
/// left out where the stage does not hold it, so that cells of one column are of one op. A gap divides embedding, attention
/// block, MLP block and head.
void paintRecomputeStrip(QPainter& painter, const QRectF& rect, const StageFacts& stage, const QPalette& palette);
/// The width that gives each cell `cell` pixels.
[[nodiscard]] int recomputeStripWidth(int cell);

}  // namespace evenkeel::gui
