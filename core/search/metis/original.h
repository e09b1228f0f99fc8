// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/search/metis/device_groups.h"
#include "core/search/metis/original_case.h"

namespace evenkeel::metis {

/// One plan as public Metis costs it. Milliseconds.
struct OriginalPlan {
  std::vector<std::string> typeOrder;
  DeviceGroups groups;
  int stagesCosted = 0;  // fewer than there are groups where fault B1 strikes
  std::int64_t microBatches = 0;
  std::vector<std::pair<int, int>> degrees;  // (dp, tp) by stage
  std::vector<int> layerEnds;                // first layer of each stage, and the end
  double execution = 0, forwardBackwardSync = 0, update = 0, dpCost = 0, ppCost = 0, total = 0;
};

/// Public Metis with all its faults (baseline-metis.md 2 to 5), to test that our account of it is right: every plan that it
/// costs, in its order. Ends early when asked to stop. Single thread.
[[nodiscard]] std::vector<OriginalPlan> searchAsOriginal(const OriginalCase& given, const std::stop_token& stop);
/// The same, one plan at a time: on large clusters there are millions.
void searchAsOriginal(const OriginalCase& given, const std::function<bool()>& stopped,
                      const std::function<void(OriginalPlan&&)>& onPlan);

/// Index of the cheapest plan, the first of equal ones; the plans must not be empty.
[[nodiscard]] std::size_t cheapest(const std::vector<OriginalPlan>& plans);

}  // namespace evenkeel::metis
