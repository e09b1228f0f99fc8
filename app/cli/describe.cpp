// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/describe.h"

#include <fmt/format.h>

#include "app/cli/table.h"
#include "core/report/pipeline_groups.h"

namespace evenkeel::cli {
namespace {

std::string recomputed(const Model& model, const Stage& stage) {
  std::string text;
  for (const Recompute& recompute : stage.recompute) {
    if (!text.empty()) text += "; ";
    for (std::size_t i = 0; i < recompute.ops.size(); ++i)
      text += (i == 0 ? "" : " ") + std::string(label(model, recompute.ops[i]));
    text += fmt::format(" in [{}, {})", recompute.units.first, recompute.units.last);
  }
  return text.empty() ? "-" : text;
}

void describePipeline(const Plan& plan, const report::PipelineGroup& group, std::string& text) {
  const Pipeline& pipeline = plan.pipelines[group.first];
  text += report::nameOf(group);
  text +=
      fmt::format(": {} samples in {} micro-batches of {}", pipeline.localBatch, pipeline.microBatchCount(), pipeline.microBatch);
  if (pipeline.localBatch % pipeline.microBatch != 0)
    text += fmt::format(" (the last of {})", pipeline.localBatch % pipeline.microBatch);
  if (pipeline.predictedTime)
    text += fmt::format(", {}, bubbles {:.1f} %", shortTime(pipeline.predictedTime->value), 100 * pipeline.bubbleFraction);
  text += "\n";
  std::vector<std::vector<std::string>> rows = {
      {"  stage", "type", "devices", "tp x dp", "#L", "units", "forward", "backward", "memory", "recompute"}};
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const Stage& stage = pipeline.stages[s];
    rows.push_back(
        {fmt::format("  {}", s), plan.cluster.typeOf(stage.devices.front()).name, deviceList(plan.cluster, stage.devices),
         fmt::format("{} x {}", stage.tp, stage.dp), fmt::format("{:g}", layersIn(plan.model, stage.units)),
         fmt::format("[{}, {})", stage.units.first, stage.units.last),
         stage.predicted ? shortTime(stage.predicted->forward.value) : "?",
         stage.predicted ? shortTime(stage.predicted->backward.value) : "?",
         stage.predicted
             ? fmt::format("{:.3g} of {:.3g} GiB", gib(stage.predicted->memory.total()), gib(stage.predicted->memory.capacity))
             : "?",
         recomputed(plan.model, stage)});
  }
  text += alignedTable(rows) + "\n";
}

}  // namespace

std::string deviceList(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  constexpr std::size_t kMostRuns = 3;
  std::string text;
  std::size_t runs = 0, shown = 0;
  for (std::size_t i = 0; i < devices.size();) {
    std::size_t end = i + 1;
    while (end < devices.size() && devices[end].node == devices[i].node && devices[end].index == devices[end - 1].index + 1)
      ++end;
    if (++runs > kMostRuns) break;
    text += (text.empty() ? "" : ", ") + cluster.nameOf(devices[i]);
    if (end - i > 1) text += fmt::format("-{}", devices[end - 1].index);
    shown = i = end;
  }
  if (shown < devices.size()) text += fmt::format(" and {} more", devices.size() - shown);
  return text;
}

std::string describePlan(const Plan& plan) {
  std::string text;
  for (const report::PipelineGroup& group : report::pipelineGroups(plan)) describePipeline(plan, group, text);
  const auto idle = plan.idleDevices();
  if (!idle.empty())
    text += fmt::format("idle: {} ({} of {} devices)\n", deviceList(plan.cluster, idle), idle.size(), plan.cluster.deviceCount());
  return text;
}

std::string errorBand(const PlanPrediction& predicted) {
  return predicted.error > 0 ? fmt::format(" +- {:.0f} %", 100 * predicted.error) : "";
}

std::string headline(const Plan& plan) {
  const PlanPrediction& predicted = *plan.predicted;
  std::string text = fmt::format("{}/iteration{}", shortTime(predicted.iteration.value), errorBand(predicted));
  if (predicted.lowerBound.value > 0)
    text += fmt::format("   bound {}   gap {:.1f} %", shortTime(predicted.lowerBound.value), 100 * predicted.gap());
  text += fmt::format("   {:.4g} samples/s   {:.4g} tokens/s", predicted.samplesPerSecond, predicted.tokensPerSecond);
  if (predicted.mfu > 0) text += fmt::format("   MFU {:.1f} %", 100 * predicted.mfu);  // a model of times alone has no FLOPs
  // More work than the devices' peaks allow is never true (field-faults: nanoGPT PR #464).
  if (predicted.mfu > 1)
    text += "\nwarning: more than 100 % of the devices' peak: the profile or a device's peak_tflops is wrong";
  return text;
}

std::string describe(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& violation : violations) {
    text += fmt::format("{}: {}{}\n", violation.where, violation.what, violation.remedy.empty() ? "" : "; " + violation.remedy);
  }
  return text;
}

Json toJson(const std::vector<Violation>& violations) {
  Json all = Json::array();
  for (const Violation& violation : violations)
    all.push_back({{"where", violation.where}, {"what", violation.what}, {"remedy", violation.remedy}});
  return all;
}

}  // namespace evenkeel::cli
