// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/cost_model.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/profile/op_work.h"

namespace evenkeel {

CostModel::CostModel(const Cluster& cluster, const Model& model, const Training& training, const Profile& profile,
                     const RuntimeTraits& runtime)
    : cluster_(cluster), model_(model), training_(training), profile_(profile), runtime_(runtime) {
  for (const Node& node : cluster.nodes) {
    std::vector<int>& ofNode = kindOfDevice_.emplace_back();
    for (const Device& device : node.devices) {
      const auto found = std::ranges::find_if(
          kinds_, [&](const Kind& kind) { return kind.typeIndex == device.type && kind.type.intra == node.intra; });
      ofNode.push_back(static_cast<int>(found - kinds_.begin()));
      if (found != kinds_.end()) continue;
      Kind kind{device.type, cluster.deviceTypes[static_cast<std::size_t>(device.type)], {}, {}, {}};
      kind.type.intra = node.intra;
      kind.traits = runtime.device(kind.type);
      kind.capacity = {
          static_cast<std::int64_t>(std::floor(static_cast<double>(kind.type.memory.value) * (1.0 - kMemoryReserve)))};
      kind.reserved = kind.traits.outside.value_or(profile.reserved(kind.type));
      kinds_.push_back(std::move(kind));
    }
  }
  hasLimitedSwitches_ = std::ranges::any_of(cluster.switches, [](const Switch& s) { return s.total.value > 0; });
  for (std::size_t kind = 0; kind < parameters_.size(); ++kind) {
    for (int tp = 1; tp <= kKnownTps; ++tp)
      parameters_[kind][static_cast<std::size_t>(tp)] = countParameters(static_cast<UnitKind>(kind), tp);
  }
}

int CostModel::kindOf(DeviceId device) const {
  return kindOfDevice_[static_cast<std::size_t>(device.node)][static_cast<std::size_t>(device.index)];
}

OpCosts CostModel::computeCosts(int kind, int tp, std::int64_t samples) const {
  const DeviceType& type = typeOfKind(kind);
  const DeviceTraits& traits = kinds_[static_cast<std::size_t>(kind)].traits;
  OpCosts costs;
  for (int op = 0; op < kOpCount; ++op) {
    OpCost& cost = costs[static_cast<std::size_t>(op)];
    cost = profile_.cost(type, static_cast<Op>(op), tp, samples);
    if (traits.runAhead < 1) {
      // What is not held up by launches takes a sample as long as in larger micro-batches.
      Seconds forward = cost.forward, backward = cost.backward;
      for (const int more : {2, 4, 8}) {
        const OpCost larger = profile_.cost(type, static_cast<Op>(op), tp, samples * more);
        forward = std::min(forward, (1.0 / more) * larger.forward);
        backward = std::min(backward, (1.0 / more) * larger.backward);
      }
      cost.forward = std::max(forward, traits.runAhead * cost.forward);
      cost.backward = std::max(backward, traits.runAhead * cost.backward);
    }
    if (traits.slowdown != 0 || traits.productSlowdown != 0) {
      const OpWork work = opWork(model_, training_, static_cast<Op>(op), tp, samples);
      const FlopsPerSecond peak = type.peak.at(training_.precision) * type.speed;
      cost.forward = (1 + traits.slowdown) * cost.forward + traits.productSlowdown * (work.forward / peak);
      cost.backward = (1 + traits.slowdown) * cost.backward + traits.productSlowdown * (work.backward / peak);
    }
  }
  return costs;
}

const OpCosts& CostModel::opCosts(int kind, int tp, std::int64_t samples) const {
  const std::tuple key{kind, tp, samples};
  {
    const std::shared_lock lock(costsMutex_);
    if (const auto found = costs_.find(key); found != costs_.end()) return found->second;
  }
  OpCosts costs = computeCosts(kind, tp, samples);
  const std::unique_lock lock(costsMutex_);
  return costs_.emplace(key, costs).first->second;
}

std::int64_t CostModel::parameters(UnitKind kind, int tp) const {
  return tp <= kKnownTps ? parameters_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(tp)] : countParameters(kind, tp);
}

std::int64_t CostModel::countParameters(UnitKind kind, int tp) const {
  std::int64_t sum = 0;
  for (const Op op : opsOf(kind)) sum += opWork(model_, training_, op, tp, 1).parameters;
  return sum;
}

std::int64_t CostModel::tiedParameters(int tp) const {
  return model_.tiedEmbeddings ? opWork(model_, training_, Op::Head, tp, 1).parameters : 0;
}

LinkSpec CostModel::link(DeviceId a, DeviceId b) const {
  if (a.node == b.node || (cluster_.links.empty() && cluster_.switches.empty())) return cluster_.linkBetween(a, b);
  return way(a.node, b.node).link;
}

std::span<const int> CostModel::limitedSwitches(DeviceId a, DeviceId b) const {
  if (a.node == b.node || !hasLimitedSwitches_) return {};
  return way(a.node, b.node).limitedSwitches;
}

const CostModel::Way& CostModel::way(int first, int second) const {
  const auto key = std::minmax(first, second);
  {
    const std::shared_lock lock(linksMutex_);
    if (const auto found = ways_.find(key); found != ways_.end()) return found->second;
  }
  const DeviceId a{key.first, 0}, b{key.second, 0};
  Way made{cluster_.linkBetween(a, b), cluster_.switchesBetween(a, b)};
  std::erase_if(made.limitedSwitches,
                [&](int index) { return cluster_.switches[static_cast<std::size_t>(index)].total.value == 0; });
  const std::unique_lock lock(linksMutex_);
  return ways_.emplace(key, std::move(made)).first->second;
}

}  // namespace evenkeel
