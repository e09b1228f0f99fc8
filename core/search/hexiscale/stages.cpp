// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/hexiscale/stages.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace evenkeel::hexiscale {
namespace {

constexpr int kMostTp = 8;

/// The original's table.
std::vector<std::vector<int>> tableOf(int devices) {
  switch (devices) {
    case 1: return {{1}};
    case 2: return {{2}, {1, 1}};
    case 3: return {{2, 1}, {1, 1, 1}};
    case 4: return {{4}, {2, 2}, {2, 1, 1}};
    case 5: return {{4, 1}, {2, 2, 1}};
    case 6: return {{4, 2}, {2, 2, 2}};
    case 7: return {{4, 2, 1}, {2, 2, 2, 1}};
    default: return {{8}, {4, 4}, {4, 2, 2}};
  }
}

std::vector<StageDevices> dividedBy(const std::vector<int>& devices, const std::vector<int>& tps) {
  std::vector<StageDevices> stages;
  auto next = devices.begin();
  for (const int tp : tps) {
    stages.emplace_back(next, next + tp);
    next += tp;
  }
  return stages;
}

double bandwidthBetween(const Setting& setting, const SubPart& a, const SubPart& b) {
  double sum = 0;
  for (const int x : a) {
    for (const int y : b) sum += setting.bandwidth(x, y);
  }
  return sum;
}

double memoryOf(const Setting& setting, const StageDevices& stage) {
  return std::accumulate(stage.begin(), stage.end(), 0.0, [&](double sum, int device) {
    return sum + setting.devices[static_cast<std::size_t>(device)].memoryGib;
  });
}

}  // namespace

std::vector<std::size_t> orderOfSubParts(const Setting& setting, const std::vector<SubPart>& parts) {
  if (parts.size() == 3) {
    if (bandwidthBetween(setting, parts[0], parts[2]) <= bandwidthBetween(setting, parts[0], parts[1])) return {0, 2, 1};
    return {2, 1, 0};
  }
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

std::vector<std::vector<int>> tpChoices(int devices, std::span<const int> allowed) {
  const auto isAllowed = [&](int tp) { return std::ranges::find(allowed, tp) != allowed.end(); };
  const int whole = devices <= kMostTp ? 0 : (devices - 1) / kMostTp;  // groups of 8 before the rest
  std::vector<std::vector<int>> choices;
  for (const std::vector<int>& eight : tableOf(kMostTp)) {
    for (const std::vector<int>& rest : tableOf(devices - kMostTp * whole)) {
      std::vector<int> choice;
      for (int i = 0; i < whole; ++i) choice.insert(choice.end(), eight.begin(), eight.end());
      choice.insert(choice.end(), rest.begin(), rest.end());
      if (std::ranges::all_of(choice, isAllowed)) choices.push_back(std::move(choice));
    }
    if (whole == 0) break;
  }
  if (!choices.empty()) return choices;
  // The largest allowed degrees, then ones.
  std::vector<int> choice;
  for (int left = devices; left > 0; left -= choice.back()) {
    int tp = 1;
    for (const int one : allowed) {
      if (one <= std::min(left, kMostTp)) tp = std::max(tp, one);
    }
    choice.push_back(tp);
  }
  choices.push_back(std::move(choice));
  if (choices.front().front() > 1) choices.emplace_back(static_cast<std::size_t>(devices), 1);
  return choices;
}

std::vector<StageDevices> stagesOf(const Setting& setting, const SubPart& part, Batches batches) {
  std::map<int, std::vector<int>> hosts;
  for (const int device : part) hosts[setting.devices[static_cast<std::size_t>(device)].host].push_back(device);
  std::vector<StageDevices> stages;
  for (const auto& [host, devices] : hosts) {
    const int count = static_cast<int>(devices.size());
    std::vector<StageDevices> best;
    double bestTime = 0;
    for (const std::vector<int>& tps : tpChoices(count, setting.tps)) {
      Layout alone{dividedBy(devices, tps), {}};
      int left = setting.layers;
      for (const int tp : tps) {
        alone.layers.push_back(setting.layers * tp / count);
        left -= alone.layers.back();
      }
      alone.layers.back() += left;
      const double time = pipelineSeconds(setting, alone, batches);
      if (!best.empty() && time >= bestTime) continue;
      best = std::move(alone.stages);
      bestTime = time;
    }
    stages.insert(stages.end(), best.begin(), best.end());
  }
  return stages;
}

std::vector<int> layersByMemory(const Setting& setting, std::span<const StageDevices> stages) {
  std::vector<double> memory;
  for (const StageDevices& stage : stages) memory.push_back(memoryOf(setting, stage));
  const double all = std::accumulate(memory.begin(), memory.end(), 0.0);
  std::vector<int> layers(stages.size(), 0);
  int left = setting.layers;
  for (bool gave = true; gave && left > 0;) {
    gave = false;
    for (std::size_t k = 0; k < stages.size() && left > 0; ++k) {
      if (static_cast<double>(layers[k] + 1) / setting.layers > memory[k] / all) continue;
      ++layers[k];
      --left;
      gave = true;
    }
  }
  std::vector<std::size_t> order(stages.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t k) { return memory[k]; });
  std::ranges::reverse(order);  // of equal ones the later first, as the original's sort has it up to 16 stages
  for (std::size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++layers[order[i]];
  return layers;
}

std::vector<int> layersForAll(const Setting& setting, std::span<const StageDevices> stages) {
  if (stages.size() > static_cast<std::size_t>(setting.layers)) return {};
  std::vector<int> layers = layersByMemory(setting, stages);
  for (int& empty : layers) {
    if (empty > 0) continue;
    --*std::ranges::max_element(layers);
    ++empty;
  }
  return layers;
}

}  // namespace evenkeel::hexiscale
