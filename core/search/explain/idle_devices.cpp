// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/explain/idle_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/cost/evaluate.h"
#include "core/search/eth/polish.h"

namespace evenkeel {
namespace {

/// Candidates; beyond, every second cut, every fourth, ...
constexpr int kMostCandidates = 600;

}  // namespace

MoreUsed bestUseOf(const CostModel& model, const std::vector<Pipeline>& pipelines, DeviceId device, std::stop_token stop) {
  MoreUsed best;
  Seconds bestTime{std::numeric_limits<double>::infinity()};
  const auto offer = [&](std::vector<Pipeline> changed, const auto& how) {
    if (worstLack(model, changed)) {
      if (best.pipelines.empty()) best = {how(), std::move(changed)};
      return;
    }
    const Seconds time = iterationTime(model, changed);
    if (time >= bestTime) return;
    bestTime = time;
    best = {how(), std::move(changed)};
  };

  std::vector<std::size_t> looks;  // one pipeline of each
  int candidates = 0;
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    if (std::ranges::any_of(looks, [&](std::size_t other) { return alike(pipelines[other], pipelines[p]); })) continue;
    looks.push_back(p);
    for (const Stage& stage : pipelines[p].stages) candidates += stage.dp == 1 ? 2 * (stage.units.size() - 1) : 0;
  }
  const int step = std::max(1, (candidates + kMostCandidates - 1) / kMostCandidates);
  for (const std::size_t p : looks) {
    for (std::size_t s = 0; s < pipelines[p].stages.size(); ++s) {
      const Stage& stage = pipelines[p].stages[s];
      if (stage.dp > 1) continue;
      for (int cut = stage.units.first + 1; cut < stage.units.last && !stop.stop_requested(); cut += step) {
        for (const bool isFront : {true, false}) {
          std::vector<Pipeline> changed = pipelines;
          std::vector<Stage>& stages = changed[p].stages;
          Stage more{.devices = {device},
                     .units = isFront ? UnitRange{stage.units.first, cut} : UnitRange{cut, stage.units.last}};
          Stage& rest = stages[s];
          (isFront ? rest.units.first : rest.units.last) = cut;
          for (Recompute& range : rest.recompute)
            range.units = {std::max(range.units.first, rest.units.first), std::min(range.units.last, rest.units.last)};
          std::erase_if(rest.recompute, [](const Recompute& range) { return range.units.size() < 1; });
          const int units = more.units.size();
          stages.insert(stages.begin() + static_cast<std::ptrdiff_t>(isFront ? s : s + 1), std::move(more));
          offer(std::move(changed), [&] {
            return fmt::format("as one more stage of pipeline {} with {} units {} stage {}, the iteration", p, units,
                               isFront ? "in front of" : "behind", s);
          });
        }
      }
    }
  }
  // Alone, with what it takes to end with the others at its speed.
  const std::int64_t batch = model.training().globalBatch;
  for (std::int64_t samples = 1; samples < batch && !stop.stop_requested(); samples *= 2) {
    std::vector<Pipeline> changed = pipelines;
    const auto from = std::ranges::max_element(changed, {}, &Pipeline::localBatch);
    if (from->localBatch <= samples) break;
    from->localBatch -= samples;
    from->microBatch = static_cast<int>(std::min<std::int64_t>(from->microBatch, from->localBatch));
    for (Stage& stage : from->stages) {
      if (from->microBatch < stage.dp) return best;
      if (!stage.shares.empty()) stage.shares.clear();
    }
    changed.push_back(
        {.localBatch = samples, .microBatch = 1, .stages = {{.devices = {device}, .units = {0, model.model().unitCount()}}}});
    offer(std::move(changed), [&] { return fmt::format("as a pipeline of its own with {} samples, the iteration", samples); });
  }
  return best;
}

}  // namespace evenkeel
