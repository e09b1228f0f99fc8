// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/eth/balance.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <queue>

namespace evenkeel {

Balance balanceBatches(std::span<const PipelineChoice* const> pipelines, std::int64_t globalBatch) {
  assert(!pipelines.empty() && globalBatch >= 1);
  using Next = std::pair<Seconds, std::size_t>;  // finish time with one more micro-batch, pipeline
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  for (std::size_t p = 0; p < pipelines.size(); ++p) queue.emplace(pipelines[p]->time(1), p);
  Balance balance{std::vector<std::int64_t>(pipelines.size(), 0), {}};
  std::vector<std::int64_t> microBatches(pipelines.size(), 0);
  for (std::int64_t left = globalBatch; left > 0;) {
    const auto [time, p] = queue.top();
    queue.pop();
    const std::int64_t samples = std::min<std::int64_t>(left, pipelines[p]->microBatch);
    balance.batches[p] += samples;
    left -= samples;
    ++microBatches[p];
    balance.time = std::max(balance.time, time);
    queue.emplace(pipelines[p]->time(microBatches[p] + 1), p);
  }
  return balance;
}

}  // namespace evenkeel
