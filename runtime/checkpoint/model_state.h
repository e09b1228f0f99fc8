// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>

namespace evenkeel {

/// What a training keeps of every parameter, and a checkpoint holds.
enum class ModelState { Weights, FirstMoments, SecondMoments };
inline constexpr std::array<ModelState, 3> kModelStates = {ModelState::Weights, ModelState::FirstMoments, ModelState::SecondMoments};

}  // namespace evenkeel
