// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/cost/evaluate.h"
#include "core/report/svg.h"

namespace evenkeel::report {

/// What each stage of a plan does in one iteration, one row a stage, equal pipelines once, from 0 to `end`. The evaluation must
/// have its timeline. A plan of many unlike pipelines is cut, and says so.
[[nodiscard]] Svg timelinePicture(const Evaluation& evaluation, Seconds end);

/// One step as it was predicted (one row a stage) and, below each stage, as its ranks measured it, on one axis from 0 to `end`. A plan of
/// many stages is cut, and says so.
[[nodiscard]] Svg stepPicture(const Timeline& predicted, const Timeline& measured, Seconds end);

/// Memory of each stage's fullest device by what it holds, as a stack beside the limit of that device; `most` is the top of the
/// axis, so that pictures of several plans compare.
[[nodiscard]] Svg memoryPicture(const Plan& plan, Bytes most);
/// The largest capacity or use of any stage: what memoryPicture's axis must reach.
[[nodiscard]] Bytes memoryTop(const Plan& plan);

/// Classes and meanings of the parts of memoryPicture and of the bars of timelinePicture, for their legends.
[[nodiscard]] std::vector<std::pair<std::string_view, std::string_view>> memoryLegend();
[[nodiscard]] std::vector<std::pair<std::string_view, std::string_view>> timelineLegend();

/// The stages of a plan as cards in rows, one row a kind of pipeline: HTML with the classes of compare_html.h.
[[nodiscard]] std::string stageCards(const Plan& plan);

}  // namespace evenkeel::report
