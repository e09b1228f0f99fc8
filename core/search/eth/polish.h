// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/search/session.h"

namespace evenkeel {

/// Removes the bottleneck of the incumbent under the reported number itself, as long as it helps: a unit over a cut of the
/// slowest pipelines (equal ones together), another micro-batch of theirs, or samples from a slowest pipeline to another.
void polish(SearchSession& session);

/// Moves `count` units over the cut behind stage `cut` (towards the later stage if positive), recomputation along with them.
/// False: a stage would be left empty.
[[nodiscard]] bool moveCut(Pipeline& pipeline, std::size_t cut, int count);
/// Of equal stages, samples and micro-batches; on which devices does not matter.
[[nodiscard]] bool alike(const Pipeline& a, const Pipeline& b);

}  // namespace evenkeel
