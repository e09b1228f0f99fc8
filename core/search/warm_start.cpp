// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/warm_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

namespace evenkeel {
namespace {

/// The device of the same name and type.
std::optional<DeviceId> sameDevice(const Cluster& from, DeviceId device, const Cluster& to) {
  const auto found = to.find(from.nameOf(device));
  if (!found || to.typeOf(*found).name != from.typeOf(device).name) return std::nullopt;
  return *found;
}

}  // namespace

std::vector<Pipeline> carriedOver(const Plan& last, const Problem& problem) {
  if (last.model.unitCount() != problem.model.unitCount()) return {};
  std::vector<Pipeline> pipelines;
  for (Pipeline pipeline : last.pipelines) {
    bool isWhole = true;
    for (Stage& stage : pipeline.stages) {
      stage.predicted.reset();
      for (DeviceId& device : stage.devices) {
        const auto same = sameDevice(last.cluster, device, problem.cluster);
        isWhole = isWhole && same;
        if (same) device = *same;
      }
    }
    pipeline.predictedTime.reset();
    if (isWhole) pipelines.push_back(std::move(pipeline));
  }
  const std::int64_t batch = problem.training.globalBatch;
  // Fewer samples than pipelines: the first ones train.
  pipelines.resize(std::min(pipelines.size(), static_cast<std::size_t>(batch)));
  std::int64_t before = 0, left = batch;
  for (const Pipeline& pipeline : pipelines) before += pipeline.localBatch;
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    Pipeline& pipeline = pipelines[p];
    const auto others = static_cast<std::int64_t>(pipelines.size() - p - 1);
    const std::int64_t share = others == 0 ? left : left * pipeline.localBatch / before;
    before -= pipeline.localBatch;
    pipeline.localBatch = std::clamp<std::int64_t>(share, 1, left - others);
    left -= pipeline.localBatch;
    if (pipeline.microBatch <= pipeline.localBatch) continue;
    pipeline.microBatch = static_cast<int>(pipeline.localBatch);
    for (Stage& stage : pipeline.stages) {
      if (stage.dp > pipeline.microBatch) return {};
      stage.shares.clear();
    }
  }
  return pipelines;
}

Result<void> checkStart(std::string_view planner, const Plan& last, const Problem& problem) {
  if (planner != "optimal" && planner != "eth")
    return invalidInput("--start", fmt::format("planner {} does not start from a plan", planner),
                        "use optimal or eth, or leave it out");
  if (last.model.unitCount() != problem.model.unitCount() || last.model.hidden != problem.model.hidden ||
      last.model.opaque.has_value() != problem.model.opaque.has_value()) {
    return invalidInput("--start",
                        fmt::format("is a plan of {} ({} layers of {}), not of {} ({} of {})", last.model.name, last.model.layers,
                                    last.model.hidden, problem.model.name, problem.model.layers, problem.model.hidden),
                        "name a plan of the same model");
  }
  return {};
}

std::string notCarriedOver(std::string_view planner, const Plan& last, const Problem& problem) {
  std::size_t lost = 0;
  std::string missing;
  for (const Pipeline& pipeline : last.pipelines) {
    bool isWhole = true;
    for (const Stage& stage : pipeline.stages) {
      for (const DeviceId device : stage.devices) {
        if (sameDevice(last.cluster, device, problem.cluster)) continue;
        isWhole = false;
        if (missing.empty()) missing = fmt::format("{} {}", last.cluster.typeOf(device).name, last.cluster.nameOf(device));
      }
    }
    lost += isWhole ? 0 : 1;
  }
  if (lost == 0) return {};
  const bool isAll = lost == last.pipelines.size();
  return fmt::format("{} of the {} pipelines of the last plan {} on devices of this cluster (it has no {}): {}",
                     isAll ? "none" : fmt::format("{}", last.pipelines.size() - lost), last.pipelines.size(), isAll || last.pipelines.size() - lost == 1 ? "is" : "are",
                     missing,
                     planner == "optimal" ? "of the others their stages and the prices of devices are used"
                     : isAll              ? "the search starts from nothing"
                                          : "the search starts from these");
}

}  // namespace evenkeel
