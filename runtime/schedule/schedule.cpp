// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/schedule/schedule.h"

#include <algorithm>
#include <cassert>

namespace evenkeel {

std::vector<Instruction> oneForwardOneBackward(const StagePosition& position) {
  const auto [stage, stages, microBatches] = position;
  assert(stage >= 0 && stage < stages && microBatches >= 1);
  const bool isFirst = stage == 0, isLast = stage == stages - 1;
  std::vector<Instruction> list;
  const auto forward = [&](int m) {
    if (!isFirst) list.push_back({Action::ReceiveActivation, m});
    list.push_back({Action::Forward, m});
    if (!isLast) list.push_back({Action::SendActivation, m});
  };
  const auto backward = [&](int m) {
    if (!isLast) list.push_back({Action::ReceiveGradient, m});
    list.push_back({Action::Backward, m});
    if (!isFirst) list.push_back({Action::SendGradient, m});
  };
  const int fill = std::min(stages - 1 - stage, microBatches);
  for (int m = 0; m < fill; ++m) forward(m);
  for (int m = 0; m < microBatches; ++m) {
    if (fill + m < microBatches) forward(fill + m);
    backward(m);
  }
  return list;
}

}  // namespace evenkeel
