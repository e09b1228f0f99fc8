// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/sync_rates.h"

#include <algorithm>

#include "core/cost/memory.h"
#include "core/profile/analytic_profile.h"

namespace evenkeel::optimal {

std::vector<double> syncRates(const CostModel& model, Purpose purpose, Rings rings, int pipelines) {
  const Cluster& cluster = model.cluster();
  const Training& training = model.training();
  const auto count = static_cast<std::size_t>(model.kindCount());
  std::vector<double> fastest(count, 0.0), slowest(count, 0.0);  // bytes per second
  const auto offer = [&](std::size_t kind, double bandwidth) {
    fastest[kind] = std::max(fastest[kind], bandwidth);
    slowest[kind] = slowest[kind] == 0 ? bandwidth : std::min(slowest[kind], bandwidth);
  };
  const bool drawn = !cluster.links.empty() || !cluster.switches.empty();
  for (int n = 0; n < static_cast<int>(cluster.nodes.size()); ++n) {
    const Node& node = cluster.nodes[static_cast<std::size_t>(n)];
    for (int d = 0; d < static_cast<int>(node.devices.size()); ++d) {
      const auto kind = static_cast<std::size_t>(model.kindOf({n, d}));
      if (d > 0 && node.devices[static_cast<std::size_t>(d)].type == node.devices[static_cast<std::size_t>(d - 1)].type) continue;
      if (rings == Rings::InNode) {
        offer(kind, node.intra.bandwidth.value);
      } else if (!drawn) {
        // A node's own NIC is never passed by; shared ones are taken as if they were free.
        offer(kind, node.nic.bandwidth.value);
      } else {
        for (int other = 0; other < static_cast<int>(cluster.nodes.size()); ++other) {
          if (other != n) offer(kind, model.link({n, 0}, {other, 0}).bandwidth.value);
        }
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
