// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/eth/skipping.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace evenkeel {

bool Capacity::covers(const Capacity& other) const {
  return compute >= other.compute && memory >= other.memory && memoryBandwidth >= other.memoryBandwidth && intra >= other.intra &&
         nic >= other.nic;
}

std::vector<Capacity> capacitiesOf(const CostModel& model, const std::vector<TypeFigures>& types) {
  std::vector<Capacity> capacities;
  for (const TypeFigures& figures : types) {
    const DeviceType& type = model.typeOfKind(figures.kind);
    capacities.push_back({.compute = type.speed * type.peak.at(model.training().precision).value,
                          .memory = static_cast<double>((model.capacityOf(figures.kind) - model.reservedOf(figures.kind)).value),
                          .memoryBandwidth = type.speed * type.memoryBandwidth.value,
                          .intra = figures.intra.bandwidth.value,
                          .nic = figures.nic.bandwidth.value});
  }
  return capacities;
}

bool dominates(const Composition& large, const Composition& small, const std::vector<Capacity>& capacities) {
  const std::size_t types = capacities.size();
  std::vector<std::vector<int>> taken(types, std::vector<int>(types, 0));  // [of large][for small]
  Composition left = large;
  std::vector<char> seen(types);
  // Finds a device for one more of type `wanted`, moving what others took where that helps; moves `most` at once at most.
  const std::function<int(std::size_t, int)> place = [&](std::size_t wanted, int most) -> int {
    for (std::size_t t = 0; t < types; ++t) {
      if (seen[t] || !capacities[t].covers(capacities[wanted])) continue;
      seen[t] = 1;
      if (const int moved = std::min(most, left[t]); moved > 0) {
        left[t] -= moved;
        taken[t][wanted] += moved;
        return moved;
      }
      for (std::size_t other = 0; other < types; ++other) {
        if (taken[t][other] == 0 || other == wanted) continue;
        if (const int moved = place(other, std::min(most, taken[t][other])); moved > 0) {
          taken[t][other] -= moved;
          taken[t][wanted] += moved;
          return moved;
        }
      }
    }
    return 0;
  };
  for (std::size_t t = 0; t < types; ++t) {
    for (int missing = small[t]; missing > 0;) {
      std::ranges::fill(seen, 0);
      const int moved = place(t, missing);
      if (moved == 0) return false;
      missing -= moved;
    }
  }
  return true;
}

ThroughputBounds::Total ThroughputBounds::totalOf(const Composition& composition) const {
  Total total;
  for (std::size_t t = 0; t < composition.size(); ++t) {
    total.compute += composition[t] * capacities_[t].compute;
    total.memory += composition[t] * capacities_[t].memory;
  }
  return total;
}

void ThroughputBounds::learn(const Composition& composition, double throughput) {
  double& known = known_.try_emplace(composition, throughput).first->second;
  known = std::max(known, throughput);
  asked_.clear();
}

const ThroughputBounds::Bounds& ThroughputBounds::of(const Composition& composition) {
  const auto [entry, isNew] = asked_.try_emplace(composition);
  if (isNew) entry->second = {byDominance(composition), byScaling(composition)};
  return entry->second;
}

double ThroughputBounds::byDominance(const Composition& composition) const {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [known, throughput] : known_) {
    if (throughput < least && dominates(known, composition, capacities_)) least = throughput;
  }
  return least;
}

double ThroughputBounds::byScaling(const Composition& composition) const {
  const Total total = totalOf(composition);
  double nearest = std::numeric_limits<double>::infinity(), scaled = nearest;
  for (const auto& [known, throughput] : known_) {
    if (throughput == 0) continue;  // says nothing of one that holds the model
    const Total other = totalOf(known);
    const double distance = std::max(total.compute / other.compute, other.compute / total.compute);
    if (distance >= nearest) continue;
    nearest = distance;
    scaled = throughput * std::max(total.compute / other.compute, total.memory / other.memory);
  }
  return scaled;
}

}  // namespace evenkeel
