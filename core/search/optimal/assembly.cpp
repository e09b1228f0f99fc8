// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/assembly.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/cost/simulator.h"
#include "core/cost/stage_time.h"
#include "core/search/tp_groups.h"

namespace evenkeel::optimal {
namespace {

struct Demand {
  int kind, tp;
  std::size_t pipeline, stage;
  int replica;
};

}  // namespace

std::vector<Load> balanced(std::span<const Column> columns, const Packed& packed, std::span<const PathTime> times,
                           std::int64_t batch) {
  const auto samplesOf = [&](std::size_t i, double time) {
    Column column{.microBatch = columns[packed.copies[i].first].microBatch,
                  .mostMicroBatches = columns[packed.copies[i].first].mostMicroBatches,
                  .fill = times[i].fill,
                  .pace = times[i].pace};
    return column.samplesIn(time);
  };
  const auto sumAt = [&](double time) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < packed.copies.size(); ++i) sum += packed.copies[i].second * samplesOf(i, time);
    return sum;
  };
  double low = 0, high = std::max(packed.time, 1e-9);
  for (int doubling = 0; sumAt(high) < batch; ++doubling) {
    if (doubling > 40) return {};
    low = high;
    high *= 1.5;
  }
  while (high - low > 1e-9 * high) {
    const double middle = (low + high) / 2;
    (sumAt(middle) >= batch ? high : low) = middle;
  }
  std::vector<Load> loads;
  for (std::size_t i = 0; i < packed.copies.size(); ++i) {
    const std::int64_t samples = samplesOf(i, high);
    for (int copy = 0; copy < packed.copies[i].second && samples > 0; ++copy) loads.push_back({packed.copies[i].first, samples});
  }
  // What is too much goes from those that finish last: whole micro-batches first, then the rest of one.
  std::int64_t surplus = sumAt(high) - batch;
  for (const bool whole : {true, false}) {
    for (auto load = loads.rbegin(); load != loads.rend() && surplus > 0; ++load) {
      const std::int64_t step = whole ? columns[load->column].microBatch : surplus;
      if (step > surplus) continue;
      const std::int64_t taken = std::min(step, load->batch);
      load->batch -= taken;
      surplus -= taken;
    }
  }
  if (surplus > 0) return {};
  std::erase_if(loads, [](const Load& load) { return load.batch == 0; });
  return loads;
}

std::vector<Pipeline> placed(const CostModel& model, const StageOptions& options, const Limits& limits,
                             std::span<const Column> columns, std::span<const Load> loads, Neighbours neighbours,
                             std::span<const int> rankOfNode) {
  std::vector<Pipeline> pipelines;
  std::vector<Demand> demands;
  for (std::size_t p = 0; p < loads.size(); ++p) {
    const Column& column = columns[loads[p].column];
    Pipeline& pipeline = pipelines.emplace_back();
    pipeline.localBatch = loads[p].batch;
    pipeline.microBatch = static_cast<int>(std::min<std::int64_t>(column.microBatch, loads[p].batch));
    const auto count = static_cast<int>(column.path.size());
    for (int s = 0; s < count; ++s) {
      const PathStage& from = column.path[static_cast<std::size_t>(s)];
      const StageOption& option = options.options()[from.option];
      Stage& stage = pipeline.stages.emplace_back();
      stage.tp = option.tp;
      stage.dp = std::min(column.dps[static_cast<std::size_t>(s)], pipeline.microBatch);
      stage.units = from.units;
      const auto inFlight = static_cast<int>(std::min<std::int64_t>(count - s, pipeline.microBatchCount()));
      stage.recompute = options.recompute(from.option, from.units, inFlight);
      stage.devices.resize(static_cast<std::size_t>(stage.tp * stage.dp));
      for (int r = 0; r < stage.dp; ++r) demands.push_back({option.kind, stage.tp, p, static_cast<std::size_t>(s), r});
    }
  }
  if (neighbours == Neighbours::Replicas) {
    std::ranges::stable_sort(demands, {},
                             [&](const Demand& demand) { return pipelines[demand.pipeline].stages[demand.stage].units.first; });
  }
  std::ranges::stable_sort(demands, std::greater<>{}, &Demand::tp);

  FreeDevices free(
      limits.devices, [&](DeviceId device) { return model.kindOf(device); },
      [&](int node) { return rankOfNode[static_cast<std::size_t>(node)]; });
  for (const Demand& demand : demands) {
    const std::span devices(pipelines[demand.pipeline].stages[demand.stage].devices);
    if (!free.take(demand.kind,
                   devices.subspan(static_cast<std::size_t>(demand.replica * demand.tp), static_cast<std::size_t>(demand.tp))))
      return {};
  }
  return pipelines;
}

std::vector<int> ranksByWayOut(const Cluster& cluster) {
  std::vector<int> nodes(cluster.nodes.size()), ranks(nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  std::ranges::stable_sort(nodes, std::greater<>{}, [&](int node) {
    const Node& n = cluster.nodes[static_cast<std::size_t>(node)];
    return n.nic.bandwidth.value / (n.nicPerDevice ? 1.0 : static_cast<double>(n.devices.size()));
  });
  for (std::size_t i = 0; i < nodes.size(); ++i) ranks[static_cast<std::size_t>(nodes[i])] = static_cast<int>(i);
  return ranks;
}

PathTime simulatedTime(const CostModel& model, const Pipeline& pipeline) {
  PipelineTimes times = pipelineTimes(model, pipeline);
  times.last = times.full;
  // The fill, and as many micro-batches as it takes to see the steady pace.
  const auto stages = static_cast<std::int64_t>(times.full.size());
  const std::int64_t seen = std::min(times.microBatches, 4 * stages + 8), period = std::min(stages, seen - 1);
  const auto simulated = [&](std::int64_t microBatches) {
    times.microBatches = microBatches;
    return simulate(times).time.value;
  };
  double pace = 0;
  for (const StageTime& stage : times.full) pace = std::max(pace, (stage.forward + stage.backward).value);
  const double atSeen = simulated(seen);
  if (period > 0) pace = (atSeen - simulated(seen - period)) / static_cast<double>(period);
  return {atSeen - static_cast<double>(seen - 1) * pace, pace};
}

}  // namespace evenkeel::optimal
