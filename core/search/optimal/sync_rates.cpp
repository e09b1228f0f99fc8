// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/sync_rates.h"

#include <algorithm>
#include <set>

#include "core/cost/memory.h"
#include "core/profile/analytic_profile.h"

namespace evenkeel::optimal {

std::vector<double> syncRates(const CostModel& model, std::span<const DeviceId> devices, Purpose purpose, Rings rings,
                              int pipelines) {
  const Cluster& cluster = model.cluster();
  const Training& training = model.training();
  const auto count = static_cast<std::size_t>(model.kindCount());
  std::vector<double> fastest(count, 0.0), slowest(count, 0.0);  // bytes per second
  const auto offer = [&](std::size_t kind, double bandwidth) {
    fastest[kind] = std::max(fastest[kind], bandwidth);
    slowest[kind] = slowest[kind] == 0 ? bandwidth : std::min(slowest[kind], bandwidth);
  };
  const bool drawn = !cluster.links.empty() || !cluster.switches.empty();
  std::set<int> nodes;
  std::set<std::pair<int, std::size_t>> kinds;  // (node, kind)
  for (const DeviceId device : devices) {
    nodes.insert(device.node);
    kinds.emplace(device.node, static_cast<std::size_t>(model.kindOf(device)));
  }
  for (const auto& [n, kind] : kinds) {
    const Node& node = cluster.nodes[static_cast<std::size_t>(n)];
    if (rings == Rings::InNode) {
      offer(kind, node.intra.bandwidth.value);
    } else if (!drawn) {
      // A node's own NIC is never passed by; shared ones are taken as if they were free.
      offer(kind, node.nic.bandwidth.value);
    } else {
      for (const int other : nodes) {
        if (other != n) offer(kind, model.link({n, 0}, {other, 0}).bandwidth.value);
      }
    }
  }
  const std::int64_t gathered = training.zeroStage >= 1 ? bytesOf(training.precision) : gradientBytesPerParameter();
  const auto bytes = static_cast<double>(gradientBytesPerParameter() + gathered);
  const double part = pipelines > 1 ? 1.0 - 1.0 / pipelines : 0.0;
  const double holders = training.zeroStage == 0 ? 1 : purpose == Purpose::Plan ? pipelines : cluster.deviceCount();
  std::vector<double> rates(count, 0.0);
  for (std::size_t kind = 0; kind < count; ++kind) {
    const double bandwidth = purpose == Purpose::Bound ? fastest[kind] : slowest[kind];
    if (bandwidth > 0) rates[kind] = part * bytes / bandwidth;
    const DeviceType& type = model.typeOfKind(static_cast<int>(kind));
    const DeviceClass& c = deviceClassOf(type);
    rates[kind] += c.optimizerTraffic / (type.memoryBandwidth * (c.bandwidthEfficiency * type.speed)).value / holders;
  }
  return rates;
}

}  // namespace evenkeel::optimal
