// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>

namespace evenkeel {

/// What a run in fp16 multiplies its loss with, so that small gradients do not vanish. Halved when a gradient overflows (that step is
/// skipped), doubled after kGrowthSteps steps without. One for all ranks: each sees the same norm of the gradient and so the same
/// history. Source: Micikevicius et al., "Mixed Precision Training", ICLR 2018; first value and growth as PyTorch's GradScaler.
struct LossScale {
  static constexpr double kFirst = 65536;
  static constexpr std::int64_t kGrowthSteps = 2000;

  double value = 1;
  std::int64_t goodSteps = 0;  // since it was changed
  std::int64_t skipped = 0;    // steps of the whole run that updated nothing
  bool operator==(const LossScale&) const = default;

  void onGoodStep() {
    if (++goodSteps < kGrowthSteps) return;
    goodSteps = 0;
    value *= 2;
  }
  /// False: the gradient overflows although nothing is scaled any more.
  [[nodiscard]] bool onOverflow() {
    ++skipped;
    goodSteps = 0;
    if (value <= 1) return false;
    value = std::max(1.0, value / 2);
    return true;
  }
};

}  // namespace evenkeel
