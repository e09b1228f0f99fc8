// SPDX-License-Identifier: GPL-3.0-or-later
// What stages, pipelines and whole plans cost, as the oracle asks it: from the cost model, with nothing left out.
#include <algorithm>
#include <array>
#include <numeric>

#include "core/cost/memory.h"
#include "core/cost/stage_time.h"
#include "tests/core/search/oracle.h"

namespace evenkeel {
namespace {

Stage evenStage(int tp, int dp) {
  Stage stage;
  stage.tp = tp;
  stage.dp = dp;
  return stage;
}

}  // namespace

const Oracle::PartCost& Oracle::costOf(const Part& part, int microBatch, int samples) {
  const auto [entry, isNew] = costs_.try_emplace({part.shape, part.units.first, part.units.last, microBatch, samples});
  PartCost& cost = entry->second;
  if (!isNew) return cost;
  const Shape& shape = shapes_[part.shape];
  const std::vector<int> shares = replicaShares(evenStage(shape.tp, shape.dp()), microBatch, samples);
  std::array<int, 4> counts{};
  for (int unit = part.units.first; unit < part.units.last; ++unit) ++counts[static_cast<std::size_t>(problem_.model.unitKind(unit))];
  for (const OpSet& ops : recomputations_) {
    PartCost::Choice& choice = cost.choices.emplace_back();
    for (int r = 0; r < shape.dp(); ++r) {
      choice.memory.emplace_back();
      choice.boundary.emplace_back();
      const int share = shares[static_cast<std::size_t>(r)];
      if (share == 0) continue;
      const OpCosts& costs = model_.opCosts(classes_[static_cast<std::size_t>(shape.replicas[static_cast<std::size_t>(r)])].kind, shape.tp, share);
      Seconds forward, backward;
      for (std::size_t k = 0; k < counts.size(); ++k) {
        if (counts[k] == 0) continue;
        const UnitCost unit = unitCost(costs, static_cast<UnitKind>(k), ops);
        forward += static_cast<double>(counts[k]) * unit.forward;
        backward += static_cast<double>(counts[k]) * unit.backward;
        choice.memory.back().first += std::int64_t{counts[k]} * unit.saved;
        choice.memory.back().second = std::max(choice.memory.back().second, unit.transient);
      }
      choice.boundary.back() = costs[static_cast<std::size_t>(Op::Norm1)].boundary;
      choice.forward = std::max(choice.forward, forward);
      choice.backward = std::max(choice.backward, backward);
    }
  }
  cost.fastestFirst.resize(cost.choices.size());
  std::iota(cost.fastestFirst.begin(), cost.fastestFirst.end(), std::size_t{0});
  std::ranges::stable_sort(cost.fastestFirst, {}, [&](std::size_t c) { return cost.choices[c].backward; });
  return cost;
}

Seconds Oracle::sendBetween(std::size_t from, std::size_t to, int microBatch, int samples) {
  const auto [entry, isNew] = sends_.try_emplace({from, to, microBatch, samples});
  if (!isNew) return entry->second;
  Counts used(classes_.size(), 0);
  Pipeline pipeline{.localBatch = microBatch, .microBatch = microBatch, .stages = {}};
  pipeline.stages.push_back(stageOf({from, {0, 1}}, used));
  pipeline.stages.push_back(stageOf({to, {1, unitCount_}}, used));
  return entry->second = stageTime(model_, pipeline, 0, samples).send;
}

/// On the next devices of its classes.
Stage Oracle::stageOf(const Part& part, Counts& used) const {
  const Shape& shape = shapes_[part.shape];
  Stage stage = evenStage(shape.tp, shape.dp());
  stage.units = part.units;
  for (const int c : shape.replicas) {
    for (int rank = 0; rank < shape.tp; ++rank)
      stage.devices.push_back(classes_[static_cast<std::size_t>(c)].devices[static_cast<std::size_t>(used[static_cast<std::size_t>(c)]++)]);
  }
  return stage;
}

/// As it runs at best; nothing: it does not fit.
std::optional<PipelineTimes> Oracle::timesOf(const Structure& structure, std::int64_t samples) {
  const int count = static_cast<int>(structure.parts.size());
  const int microBatch = structure.microBatch;
  PipelineTimes times{.full = {}, .last = {}, .microBatches = (samples + microBatch - 1) / microBatch, .transfers = model_.runtime().transfers};
  const auto last = static_cast<int>(samples - (times.microBatches - 1) * microBatch);
  const int unused = deviceCount_ - std::accumulate(structure.uses.begin(), structure.uses.end(), 0);
  for (int i = 0; i < count; ++i) {
    const Part& part = structure.parts[static_cast<std::size_t>(i)];
    const std::vector<int> holders(static_cast<std::size_t>(unitCount_), shapes_[part.shape].dp() + unused);
    const auto choice = choiceOf(part, microBatch, heldOf(count - i - 1, times.microBatches, microBatch, samples), count == 1, holders);
    if (!choice) return std::nullopt;
    for (const bool isLast : {false, true}) {
      const PartCost::Choice& cost = costOf(part, microBatch, isLast ? last : microBatch).choices[*choice];
      const Seconds send =
          i + 1 < count ? sendBetween(part.shape, structure.parts[static_cast<std::size_t>(i) + 1].shape, microBatch, isLast ? last : microBatch) : Seconds{};
      (isLast ? times.last : times.full).push_back({cost.forward, cost.backward, send});
    }
  }
  return times;
}

/// Of the optimizer, and of the first stage's gradients where other pipelines hold its units: they begin when its last backward
/// ends, which is the pipeline's end, but for what may overlap with that.
Seconds Oracle::afterwards(const Structure& structure, bool isAlone) const {
  const Training& training = problem_.training;
  const int unused = deviceCount_ - std::accumulate(structure.uses.begin(), structure.uses.end(), 0);
  Seconds optimizer, sync;
  for (const Part& part : structure.parts) {
    const Shape& shape = shapes_[part.shape];
    double parameters = 0;
    for (int unit = part.units.first; unit < part.units.last; ++unit) parameters += static_cast<double>(model_.parameters(problem_.model.unitKind(unit), shape.tp));
    if (structure.parts.size() == 1) parameters -= static_cast<double>(model_.tiedParameters(shape.tp));
    for (const int c : shape.replicas) {
      const DeviceType& type = model_.typeOfKind(classes_[static_cast<std::size_t>(c)].kind);
      const DeviceClass& of = deviceClassOf(type);
      const double shard = training.zeroStage > 0 ? parameters / (shape.dp() + unused) : parameters;
      optimizer = std::max(optimizer, Seconds{shard * of.optimizerTraffic / (type.memoryBandwidth * (of.bandwidthEfficiency * type.speed)).value});
    }
  }
  // Rings of parts of unsplit parameters: those of the first stage's units where other pipelines hold them, and the tied embedding
  // where the last stage or others do.
  const Part& part = structure.parts.front();
  const Shape& shape = shapes_[part.shape];
  const auto tied = static_cast<double>(model_.tiedParameters(1));
  double parameters = isAlone && structure.parts.size() == 1 ? 0 : tied;
  if (!isAlone) {
    const bool overlaps = training.zeroStage == 0 && training.gradientSync == GradientSync::Block;
    for (int unit = 0; unit < (overlaps ? 1 : part.units.last); ++unit) {
      const UnitKind kind = problem_.model.unitKind(unit);
      parameters += static_cast<double>(model_.parameters(kind, 1));
      if (kind == UnitKind::Embedding || kind == UnitKind::Head) parameters -= tied;
    }
  }
  const std::int64_t gathered = training.zeroStage > 0 ? bytesOf(training.precision) : gradientBytesPerParameter();
  const double bytes = parameters / shape.tp * static_cast<double>(gradientBytesPerParameter() + gathered);
  for (const int c : shape.replicas) {
    const Node& node = problem_.cluster.nodes[static_cast<std::size_t>(classes_[static_cast<std::size_t>(c)].node)];
    double fastest = node.nic.bandwidth.value;
    if (node.devices.size() > 1) fastest = std::max(fastest, node.intra.bandwidth.value);
    sync = std::max(sync, Seconds{0.5 * bytes / fastest});
  }
  return (1 - 1e-9) * (optimizer + sync);
}

}  // namespace evenkeel
