// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/search/search.h"

namespace evenkeel {

/// HexiScale-style (arXiv 2409.01143): devices divided into pipelines of equal compute with slow links inside, each pipeline into
/// up to three groups with fast links inside, a stage is a tp group, layers by memory. The search of public HexiScale with its
/// faults mended and enumerated instead of sampled; hexiscale::replay has the faults.
[[nodiscard]] Planner hexiscalePlanner();

}  // namespace evenkeel
