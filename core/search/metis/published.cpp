// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/metis/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/cost/memory.h"
#include "core/profile/device_class.h"
#include "core/search/metis/balance.h"
#include "core/search/metis/layout.h"

namespace evenkeel::metis {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr double kGigabyte = 1e9;
/// Its time of a micro-batch beyond the sum of the layers. Our op costs know of none, but where it is 0 every plan is dropped
/// (fault B11).
constexpr double kResidualMs = 1e-3;

/// Layer 0 is the embedding, the last one the head.
std::vector<UnitKind> kindsOf(int layer, int layers) {
  if (layer == 0) return {UnitKind::Embedding};
  if (layer + 1 == layers) return {UnitKind::Head};
  return {UnitKind::Attention, UnitKind::Mlp};
}

}  // namespace

Result<Published> Published::of(const CostModel& model, const Limits& limits, const FairOptions& options) {
  const Cluster& cluster = model.cluster();
  const auto refused = [](const std::string& what, const std::string& remedy) {
    return invalidInput("--planner-option faults", what, remedy);
  };
  if (!std::has_single_bit(limits.devices.size()))
    return refused(fmt::format("keep: public Metis ends in an error on {} devices", limits.devices.size()),
                   "a power of two of them, or faults=mend");
  Published published(model);
  OriginalCase& given = published.given_;
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
    OriginalCase::Node node;
    for (const DeviceId device : limits.devices) {
      if (device.node != static_cast<int>(n)) continue;
      const std::string kind = published.nameOf(model.kindOf(device));
      if (node.devices > 0 && node.type != kind)
        return refused("keep: public Metis knows no nodes of unlike devices", "nodes of one type each, or faults=mend");
      node.type = kind;
      ++node.devices;
      published.devices_[kind].push_back(device);
    }
    if (node.devices == 0) continue;
    node.bandwidth = cluster.nodes[n].intra.bandwidth.value / kGigabyte;
    given.nodes.push_back(std::move(node));
  }
  published.addProfiles(limits, options);
  return published;
}

void Published::addProfiles(const Limits& limits, const FairOptions& options) {
  const Model& model = model_->model();
  const Training& training = model_->training();
  given_.layers = model.layers + 2;
  given_.globalBatch = training.globalBatch;
  given_.hidden = model.hidden;
  given_.sequence = training.sequenceLength;
  given_.vocabulary = model.paddedVocab();
  given_.mostTp = limits.tps.back();
  given_.mostBatch = static_cast<int>(std::bit_floor(static_cast<unsigned>(
      std::min<std::int64_t>(options.mostSamples, std::max<std::int64_t>(1, training.globalBatch)))));
  given_.mostPermuted = options.mostPermuted;
  given_.variance = options.variance;

  std::vector<std::string> order;
  for (const auto& [name, devices] : devices_) order.push_back(name);
  do given_.typeOrders.push_back(order);
  while (std::ranges::next_permutation(order).found);
  const int firstKind = model_->kindOf(devices_.begin()->second.front());
  given_.firstType = nameOf(firstKind);

  // Weights, gradients, optimizer of a run without ZeRO.
  const std::int64_t perParameter =
      bytesOf(training.precision) + gradientBytesPerParameter() + optimizerBytesPerParameter(training.precision);
  double parameters = 0;
  for (int layer = 0; layer < given_.layers; ++layer) {
    double stored = 0;
    for (const UnitKind unit : kindsOf(layer, given_.layers)) stored += static_cast<double>(model_->parameters(unit, 1));
    parameters += stored;
    given_.parameterBytes.push_back(stored * static_cast<double>(bytesOf(training.precision)));
  }
  for (const auto& [name, devices] : devices_) {
    const int kind = model_->kindOf(devices.front());
    given_.memoryMb[name] = static_cast<double>(model_->typeOfKind(kind).memory.value) / kMebibyte;
    for (const int tp : limits.tps) {
      for (int samples = 1; samples <= given_.mostBatch; samples *= 2) {
        const OpCosts& costs = model_->opCosts(kind, tp, samples);
        OriginalCase::Profile& profile = given_.profiles[{name, tp, samples}];
        for (int layer = 0; layer < given_.layers; ++layer) {
          Seconds time;
          std::int64_t memory = 0;
          for (const UnitKind unit : kindsOf(layer, given_.layers)) {
            const UnitCost cost = unitCost(costs, unit, {});
            time += cost.forward + cost.backward;
            memory += model_->parameters(unit, tp) * perParameter + cost.saved.value;
          }
          profile.layerMs.push_back(milliseconds(time));
          profile.layerMemoryMb.push_back(static_cast<double>(memory) / kMebibyte);
        }
        profile.forwardBackwardMs = std::accumulate(profile.layerMs.begin(), profile.layerMs.end(), 0.0) + kResidualMs;
      }
    }
  }
  const DeviceType& first = model_->typeOfKind(firstKind);
  const DeviceClass& c = deviceClassOf(first);
  given_.optimizerMs =
      1e3 * parameters * c.optimizerTraffic / (first.memoryBandwidth * (c.bandwidthEfficiency * first.speed)).value;
}

std::vector<Pipeline> Published::pipelinesOf(const OriginalPlan& plan) const {
  if (plan.layerEnds.back() != given_.layers) return {};
  for (std::size_t s = 0; s + 1 < plan.layerEnds.size(); ++s) {
    if (plan.layerEnds[s] == plan.layerEnds[s + 1]) return {};
  }
  std::vector<DeviceId> ranks;
  for (const std::string& type : plan.typeOrder) ranks.insert(ranks.end(), devices_.at(type).begin(), devices_.at(type).end());
  auto layout = std::make_shared<Layout>();
  auto next = ranks.begin();
  for (const int size : plan.groups) {
    layout->push_back({{next, next + size}, {}});
    next += size;
  }
  const auto samples = static_cast<int>(given_.globalBatch / plan.microBatches);
  Costed one{.layout = layout, .degrees = plan.degrees, .microBatch = samples, .ends = plan.layerEnds, .shares = {}};
  for (std::size_t s = 0; s < layout->size(); ++s) {
    const auto [dp, tp] = plan.degrees[s];
    std::vector<double> times;
    for (int r = 0; r < dp; ++r) {
      const std::vector<double>& layers =
          given_.profiles.at({nameOf(model_->kindOf((*layout)[s].first(r, tp))), tp, 1}).layerMs;
      times.push_back(std::accumulate(layers.begin(), layers.end(), 0.0));
    }
    one.shares.push_back(splitSamples(samples, times));
  }
  return metis::pipelinesOf(one, model_->model(), given_.globalBatch);
}

}  // namespace evenkeel::metis
