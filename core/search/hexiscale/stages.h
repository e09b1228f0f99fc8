// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/search/hexiscale/estimator.h"

namespace evenkeel::hexiscale {

/// Devices of one sub-part of a pipeline, ascending.
using SubPart = std::vector<int>;

/// The order in which sub-parts (1 to 3) follow each other: with three, the first and the one with the weaker links to it are
/// neighbours (baseline-hexiscale.md 1.5).
[[nodiscard]] std::vector<std::size_t> orderOfSubParts(const Setting& setting, const std::vector<SubPart>& parts);

/// Tp degrees that are tried for `devices` of one host, largest first; each sums to `devices` (1.6). Up to 8 devices and with all
/// degrees allowed they are the original's; beyond that groups of 8 come first (mends B6), and degrees that do not divide the
/// model are left out (mends B7).
[[nodiscard]] std::vector<std::vector<int>> tpChoices(int devices, std::span<const int> allowed);

/// The stages of a sub-part: each host's devices are divided as is fastest when they hold the whole model alone (1.6).
[[nodiscard]] std::vector<StageDevices> stagesOf(const Setting& setting, const SubPart& part, Batches batches);

/// Layers in proportion to the memory of the stages, not to their speed (1.7). Stages may get none (B3).
[[nodiscard]] std::vector<int> layersByMemory(const Setting& setting, std::span<const StageDevices> stages);

/// The same, and every stage has a layer: an empty one takes it from the one that has most (mends B3). Empty: more stages than
/// layers.
[[nodiscard]] std::vector<int> layersForAll(const Setting& setting, std::span<const StageDevices> stages);

}  // namespace evenkeel::hexiscale
