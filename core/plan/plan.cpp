// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/plan.h"

#include <algorithm>
#include <cassert>
#include <set>

#include "core/base/sha256.h"

namespace evenkeel {

std::vector<int> Stage::sharesOf(int microBatch) const {
  if (!shares.empty()) return shares;
  std::vector<int> even(static_cast<std::size_t>(dp), microBatch / dp);
  for (int r = 0; r < microBatch % dp; ++r) ++even[static_cast<std::size_t>(r)];
  return even;
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

std::string inputsHash(const Cluster& cluster, const Model& model, const Training& training) {
  Json inputs;
  inputs["cluster"] = toJson(cluster);
  inputs["model"] = toJson(model);
  inputs["training"] = toJson(training);
  return sha256(inputs.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace evenkeel
