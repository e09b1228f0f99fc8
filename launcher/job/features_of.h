// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>

#include "core/plan/features.h"

namespace evenkeel {

/// What the workers of a folder of programs can train on: CPU cores, and cards if one was built for a LibTorch with CUDA. Whether it fits a
/// node's cards, driver and PyTorch says the preflight.
[[nodiscard]] RuntimeFeatures featuresOf(const std::filesystem::path& programs);

}  // namespace evenkeel
