// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/plan.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>
#include <set>

#include "core/base/sha256.h"

namespace evenkeel {

std::vector<int> Stage::sharesOf(int microBatch) const {
  if (!shares.empty()) return shares;
  std::vector<int> even(static_cast<std::size_t>(dp), microBatch / dp);
  for (int r = 0; r < microBatch % dp; ++r) ++even[static_cast<std::size_t>(r)];
  return even;
}

std::vector<int> replicaShares(const Stage& stage, int microBatch, int samples) {
  assert(samples >= 1 && samples <= microBatch);
  const std::vector<int> full = stage.sharesOf(microBatch);
  if (samples == microBatch || stage.dp == 1) return samples == microBatch ? full : std::vector<int>{samples};
  std::vector<int> shares(full.size());
  std::vector<std::int64_t> remainders(full.size());
  for (std::size_t r = 0; r < full.size(); ++r) {
    const std::int64_t scaled = std::int64_t{full[r]} * samples;
    shares[r] = static_cast<int>(scaled / microBatch);
    remainders[r] = scaled % microBatch;
  }
  std::vector<std::size_t> order(full.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>{}, [&](std::size_t r) { return remainders[r]; });
  const int missing = samples - std::accumulate(shares.begin(), shares.end(), 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(missing); ++i) ++shares[order[i]];
  return shares;
}

int Pipeline::samplesOf(std::int64_t m) const {
  assert(m >= 0 && m < microBatchCount());
  return static_cast<int>(std::min<std::int64_t>(microBatch, localBatch - m * microBatch));
}

std::vector<DeviceId> Plan::usedDevices() const {
  std::vector<DeviceId> used;
  for (const Pipeline& pipeline : pipelines) {
    for (const Stage& stage : pipeline.stages) used.insert(used.end(), stage.devices.begin(), stage.devices.end());
  }
  std::ranges::sort(used);
  return used;
}

std::vector<DeviceId> Plan::idleDevices() const {
  const std::vector<DeviceId> all = cluster.devices(), used = usedDevices();
  std::vector<DeviceId> idle;
  std::ranges::set_difference(all, used, std::back_inserter(idle));
  return idle;
}

double layersIn(const Model& model, UnitRange units) {
  const int first = std::max(units.first, 1), last = std::min(units.last, model.unitCount() - 1);
  if (last <= first) return 0;
  return model.opaque ? last / 2 - first / 2 : (last - first) / 2.0;  // attention units are the odd ones
}

std::string inputsHash(const Cluster& cluster, const Model& model, const Training& training) {
  Json inputs;
  inputs["cluster"] = toJson(cluster);
  inputs["model"] = toJson(model);
  inputs["training"] = toJson(training);
  return sha256(inputs.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace evenkeel
