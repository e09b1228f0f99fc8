// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/unit_cost.h"

#include <algorithm>

namespace evenkeel {

UnitCost unitCost(const OpCosts& costs, UnitKind kind, OpSet recomputed) {
  UnitCost unit;
  Bytes workspace, run, largestRun;
  bool inRun = false;
  // Where dropout does not run, softmax and context keep one tensor, which is counted with the softmax: the part of its input that the
  // context does not count itself.
  const OpCost& context = costs[static_cast<std::size_t>(Op::Context)];
  const bool keepsSoftmax = !recomputed[static_cast<std::size_t>(Op::Softmax)], keepsContext = !recomputed[static_cast<std::size_t>(Op::Context)];
  const Bytes probabilities = kind == UnitKind::Attention ? std::max(Bytes{}, context.input - context.saved) : Bytes{};
  if (!keepsSoftmax && keepsContext) unit.saved += probabilities;
  for (const Op op : opsOf(kind)) {
    const auto index = static_cast<std::size_t>(op);
    const OpCost& cost = costs[index];
    unit.forward += cost.forward;
    unit.backward += cost.backward;
    workspace = std::max(workspace, cost.transient);
    if (!recomputed[index]) {
      unit.saved += cost.saved;
      inRun = false;
      continue;
    }
    unit.backward += cost.forward;
    if (!inRun) {
      unit.saved += cost.input;
      if (op == Op::Context && keepsSoftmax) unit.saved -= probabilities;
      run = {};
    }
    inRun = true;
    run += cost.saved;
    largestRun = std::max(largestRun, run);
  }
  unit.transient = workspace + largestRun;
  return unit;
}

}  // namespace evenkeel
