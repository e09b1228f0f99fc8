// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/schedule/regroup.h"

#include <algorithm>
#include <cassert>

namespace evenkeel {
namespace {

struct Range {
  int first = 0, last = 0;
};

/// The samples of each replica, as parts of the micro-batch.
std::vector<Range> rangesOf(const StageSide& side, int samples) {
  std::vector<Range> ranges;
  int first = 0;
  for (const int count : replicaShares(side.stage, side.microBatch, samples)) {
    ranges.push_back({first, first + count});
    first += count;
  }
  return ranges;
}

int rankAt(const StageSide& side, std::size_t replica, int shard) {
  return side.ranks[replica * static_cast<std::size_t>(side.stage.tp) + static_cast<std::size_t>(shard)];
}

/// The samples that both have, counted from the first of `own`.
Portion common(const Range& own, const Range& other, int peer) {
  const int first = std::max(own.first, other.first), last = std::min(own.last, other.last);
  return {peer, first - own.first, std::max(0, last - first)};
}

}  // namespace

std::vector<int> ranksOf(const Plan& plan, const Stage& stage) {
  const std::vector<DeviceId> devices = plan.usedDevices();
  std::vector<int> ranks;
  for (const DeviceId device : stage.devices)
    ranks.push_back(static_cast<int>(std::ranges::lower_bound(devices, device) - devices.begin()));
  return ranks;
}

std::vector<Portion> portionsToSend(const StageSide& from, const StageSide& to, int samples, int replica, int shard) {
  const Range own = rangesOf(from, samples)[static_cast<std::size_t>(replica)];
  const std::vector<Range> others = rangesOf(to, samples);
  std::vector<Portion> portions;
  for (std::size_t r = 0; r < others.size(); ++r) {
    for (int other = shard; other < to.stage.tp; other += from.stage.tp) {
      const Portion portion = common(own, others[r], rankAt(to, r, other));
      if (portion.count > 0) portions.push_back(portion);
    }
  }
  return portions;
}

std::vector<Portion> portionsToReceive(const StageSide& from, const StageSide& to, int samples, int replica, int shard) {
  const Range own = rangesOf(to, samples)[static_cast<std::size_t>(replica)];
  const std::vector<Range> others = rangesOf(from, samples);
  std::vector<Portion> portions;
  for (std::size_t r = 0; r < others.size(); ++r) {
    const Portion portion = common(own, others[r], rankAt(from, r, shard % from.stage.tp));
    if (portion.count > 0) portions.push_back(portion);
  }
  return portions;
}

}  // namespace evenkeel
