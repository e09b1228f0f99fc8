// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/eth/balance.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <queue>

namespace evenkeel {

namespace {

/// With so many samples; a smaller last micro-batch counts by its samples.
Seconds finish(const PipelineChoice& pipeline, std::int64_t samples) {
  return pipeline.fill + (static_cast<double>(samples) / pipeline.microBatch - 1.0) * pipeline.pace;
}

}  // namespace

Balance balanceBatches(std::span<const PipelineChoice* const> pipelines, std::int64_t globalBatch) {
  assert(!pipelines.empty() && globalBatch >= 1);
  using Next = std::pair<Seconds, std::size_t>;  // finish time with one more micro-batch, pipeline
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  int largest = 0;
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    queue.emplace(pipelines[p]->time(1), p);
    largest = std::max(largest, pipelines[p]->microBatch);
  }
  Balance balance{std::vector<std::int64_t>(pipelines.size(), 0), {}};
  std::int64_t left = globalBatch;
  while (left >= largest) {
    const auto [time, p] = queue.top();
    queue.pop();
    balance.batches[p] += pipelines[p]->microBatch;
    left -= pipelines[p]->microBatch;
    queue.emplace(finish(*pipelines[p], balance.batches[p] + pipelines[p]->microBatch), p);
  }
  // The last samples, where they may not fill a micro-batch any more: one by one.
  for (; left > 0; --left) {
    std::size_t best = 0;
    Seconds least{std::numeric_limits<double>::infinity()};
    for (std::size_t p = 0; p < pipelines.size(); ++p) {
      // The first sample of a pipeline costs a whole passage at least.
      const Seconds time = balance.batches[p] == 0 ? pipelines[p]->time(1) : finish(*pipelines[p], balance.batches[p] + 1);
      if (time >= least) continue;
      least = time;
      best = p;
    }
    ++balance.batches[best];
  }
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    if (balance.batches[p] == 0) continue;
    balance.time = std::max(balance.time, std::max(pipelines[p]->fill, finish(*pipelines[p], balance.batches[p])));
  }
  return balance;
}

}  // namespace evenkeel
