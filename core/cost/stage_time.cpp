// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/stage_time.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace evenkeel {
namespace {

struct Flow {
  DeviceId from, to;
  Bytes size;
};

/// Who sends what to whom when stage a's replicas hand a micro-batch to stage b's. Scattered: each rank of b gets its part.
std::vector<Flow> flowsBetween(const Stage& a, const Stage& b, const std::vector<int>& sharesA, const std::vector<int>& sharesB,
                               Bytes perSample, bool isScattered) {
  std::vector<Flow> flows;
  const auto deviceOf = [](const Stage& stage, int replica, int rank) {
    return stage.devices[static_cast<std::size_t>(replica * stage.tp + rank)];
  };
  int beginB = 0;
  for (int rb = 0; rb < b.dp; ++rb) {
    const int endB = beginB + sharesB[static_cast<std::size_t>(rb)];
    int beginA = 0;
    for (int ra = 0; ra < a.dp; ++ra) {
      const int endA = beginA + sharesA[static_cast<std::size_t>(ra)];
      const int common = std::min(endA, endB) - std::max(beginA, beginB);
      if (common > 0) {
        for (int rank = 0; rank < b.tp; ++rank)
          flows.push_back(
              {deviceOf(a, ra, rank % a.tp), deviceOf(b, rb, rank), {common * perSample.value / (isScattered ? b.tp : 1)}});
      }
      beginA = endA;
    }
    beginB = endB;
  }
  return flows;
}

Seconds timeOf(const CostModel& model, const std::vector<Flow>& flows) {
  if (flows.size() == 1) {
    const LinkSpec link = model.link(flows[0].from, flows[0].to);
    return link.latency + link.transferTime(flows[0].size);
  }
  // Each resource works off its flows in turn: (0 sends, 1 receives) x (a device, or a node's one NIC as index -1), and (2, a
  // switch).
  std::map<std::pair<int, DeviceId>, Seconds> load;
  Seconds latency, longest;
  const auto use = [&](int direction, DeviceId resource, Seconds time) {
    Seconds& sum = load[{direction, resource}];
    sum += time;
    longest = std::max(longest, sum);
  };
  for (const Flow& flow : flows) {
    const LinkSpec link = model.link(flow.from, flow.to);
    const Seconds time = link.transferTime(flow.size);
    latency = std::max(latency, link.latency);
    use(0, flow.from, time);
    use(1, flow.to, time);
    for (const int index : model.limitedSwitches(flow.from, flow.to))
      use(2, {index, 0}, flow.size / model.cluster().switches[static_cast<std::size_t>(index)].total);
    if (flow.from.node == flow.to.node) continue;
    const auto& nodes = model.cluster().nodes;
    if (!nodes[static_cast<std::size_t>(flow.from.node)].nicPerDevice) use(0, {flow.from.node, -1}, time);
    if (!nodes[static_cast<std::size_t>(flow.to.node)].nicPerDevice) use(1, {flow.to.node, -1}, time);
  }
  return latency + longest;
}

/// The whole residual tensor from its scattered parts, inside the node of each receiving tp group.
Seconds gatherTime(const CostModel& model, const Stage& to, const std::vector<int>& shares, Bytes perSample) {
  Seconds slowest;
  for (int r = 0; r < to.dp && to.tp > 1; ++r) {
    const LinkSpec& intra = model.typeOfKind(model.kindOf(to.devices[static_cast<std::size_t>(r * to.tp)])).intra;
    const Bytes part{shares[static_cast<std::size_t>(r)] * perSample.value / to.tp};
    slowest = std::max(slowest, static_cast<double>(to.tp - 1) * (intra.latency + intra.transferTime(part)));
  }
  return slowest;
}

void addSend(const CostModel& model, const Pipeline& pipeline, std::size_t stage, int samples, StageTime& time) {
  if (stage + 1 == pipeline.stages.size()) return;
  const RuntimeTraits& runtime = model.runtime();
  const Stage& from = pipeline.stages[stage];
  const Stage& to = pipeline.stages[stage + 1];
  const Bytes perSample{model.training().sequenceLength * model.model().hidden * bytesOf(model.training().precision)};
  const std::vector<int> shares = replicaShares(to, pipeline.microBatch, samples);
  const std::vector<Flow> flows = flowsBetween(from, to, replicaShares(from, pipeline.microBatch, samples), shares, perSample,
                                               runtime.scattersBoundary || model.training().sequenceParallel);
  time.send = timeOf(model, flows) + runtime.perTransfer;
  if (runtime.scattersBoundary && !model.training().sequenceParallel) time.send += gatherTime(model, to, shares, perSample);
  time.buffered = std::ranges::all_of(flows, [&](const Flow& flow) { return flow.size <= runtime.sendBuffer; });
}

/// Forward and backward of some units of the stage, of its slowest replica.
StageTime slowestCompute(const CostModel& model, const Pipeline& pipeline, std::size_t stage, UnitRange units, int samples) {
  const Stage& s = pipeline.stages[stage];
  const std::vector<UnitGroup> groups = unitGroups(model.model(), s, units);
  const std::vector<int> shares = replicaShares(s, pipeline.microBatch, samples);
  StageTime slowest;
  std::map<std::pair<int, int>, bool> seen;  // (kind, share)
  for (int r = 0; r < s.dp; ++r) {
    const int share = shares[static_cast<std::size_t>(r)];
    const int kind = model.kindOf(s.devices[static_cast<std::size_t>(r * s.tp)]);
    if (share == 0 || !seen.emplace(std::pair{kind, share}, true).second) continue;
    const OpCosts& costs = model.opCosts(kind, s.tp, share);
    Seconds forward, backward;
    for (const UnitGroup& group : groups) {
      const UnitCost unit = unitCost(costs, group.kind, group.recomputed);
      forward += static_cast<double>(group.count) * unit.forward;
      backward += static_cast<double>(group.count) * unit.backward;
    }
    slowest.forward = std::max(slowest.forward, forward);
    slowest.backward = std::max(slowest.backward, backward);
  }
  return slowest;
}

}  // namespace

std::vector<UnitGroup> unitGroups(const Model& model, const Stage& stage) { return unitGroups(model, stage, stage.units); }

std::vector<UnitGroup> unitGroups(const Model& model, const Stage& stage, UnitRange units) {
  std::vector<UnitGroup> groups;
  const auto add = [&](int unit, OpSet ops, int count) {
    if (count == 0) return;
    const UnitKind kind = model.unitKind(unit);
    const auto found = std::ranges::find_if(groups, [&](const UnitGroup& g) { return g.kind == kind && g.recomputed == ops; });
    if (found == groups.end()) groups.push_back({kind, ops, count});
    else found->count += count;
  };
  std::vector<int> cuts = {units.first, units.last};
  for (const Recompute& recompute : stage.recompute) {
    for (const int cut : {recompute.units.first, recompute.units.last}) cuts.push_back(std::clamp(cut, units.first, units.last));
  }
  std::ranges::sort(cuts);
  for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
    int unit = cuts[c];
    const int end = cuts[c + 1];
    if (unit == end) continue;
    OpSet ops;
    for (const Recompute& recompute : stage.recompute) {
      if (unit < recompute.units.first || unit >= recompute.units.last) continue;
      for (const Op op : recompute.ops) ops.set(static_cast<std::size_t>(op));
    }
    if (unit == 0) add(unit++, ops, 1);
    // Blocks of two kinds in turn, up to the head.
    const int blocks = std::min(end, model.unitCount() - 1) - unit;
    if (blocks > 0) {
      add(unit, ops, (blocks + 1) / 2);
      if (blocks > 1) add(unit + 1, ops, blocks / 2);
      unit += blocks;
    }
    if (unit < end) add(unit, ops, 1);
  }
  return groups;
}

StageTime stageTime(const CostModel& model, const Pipeline& pipeline, std::size_t stage, int samples) {
  StageTime time = slowestCompute(model, pipeline, stage, pipeline.stages[stage].units, samples);
  if (pipeline.stages.size() > 1) {
    time.forward += 0.5 * model.runtime().perMicroBatch;
    time.backward += 0.5 * model.runtime().perMicroBatch;
  }
  addSend(model, pipeline, stage, samples, time);
  return time;
}

Seconds backwardTime(const CostModel& model, const Pipeline& pipeline, std::size_t stage, UnitRange units, int samples) {
  return slowestCompute(model, pipeline, stage, units, samples).backward;
}

PipelineTimes pipelineTimes(const CostModel& model, const Pipeline& pipeline) {
  PipelineTimes times;
  times.microBatches = pipeline.microBatchCount();
  times.transfers = model.runtime().transfers;
  const int last = pipeline.samplesOf(times.microBatches - 1);
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    times.last.push_back(stageTime(model, pipeline, s, last));
    times.full.push_back(last == pipeline.microBatch ? times.last.back() : stageTime(model, pipeline, s, pipeline.microBatch));
  }
  return times;
}

}  // namespace evenkeel
