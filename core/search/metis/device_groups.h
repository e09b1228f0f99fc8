// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

namespace evenkeel::metis {

/// Devices of each stage, in order of the stages.
using DeviceGroups = std::vector<int>;

/// The lists of `stages` groups, powers of two each, that sum to `devices`, in the order in which Metis visits them
/// (baseline-metis.md 2): no group smaller than max(devices / stages, stages / devices) x variance; a list of more than
/// `mostPermuted` groups has neighbours tied together before it is permuted, so that some lists may occur twice. The
/// permutations come in the order of Williams' prefix shifts (SODA 2009), which starts from the descending one.
[[nodiscard]] std::vector<DeviceGroups> deviceGroups(int devices, int stages, double variance, int mostPermuted);

}  // namespace evenkeel::metis
