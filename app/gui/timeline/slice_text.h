// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <vector>

#include "core/trace/timeline.h"

namespace evenkeel::gui {

/// A slice in words: "micro-batch 6 backward, 240-260 ms", "waits 12 ms for pipeline 1, stage 2". Both times have the unit of the
/// later one and as many digits as tell them apart.
[[nodiscard]] QString sliceText(const Span& span, const std::vector<Lane>& lanes);
/// A moment on a ruler whose ticks lie `step` apart and end before `last`: all of them in one unit, with as many digits as tell
/// them apart. "3.25 s", "480 ms".
[[nodiscard]] QString tickText(Seconds tick, Seconds step, Seconds last);
/// "forward", "gradient sync", ...: the words of the legend.
[[nodiscard]] QString kindText(Span::Kind kind);

}  // namespace evenkeel::gui
