// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/plan_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/report/format.h"
#include "core/report/pipeline_groups.h"

namespace evenkeel::report {
namespace {

constexpr double kLabels = 150, kPlot = 940;  // of a timeline, in pixels
constexpr double kLane = 13, kLaneGap = 3, kGroupGap = 8;
constexpr std::size_t kMostLanes = 24, kMostBars = 24, kMostCards = 12;
constexpr double kThinnest = 0.5;  // pixels; what is narrower joins its neighbour

std::string_view classOf(Span::Kind kind) {
  switch (kind) {
    case Span::Kind::Forward: return "forward";
    case Span::Kind::Backward: return "backward";
    case Span::Kind::Sync: return "sync";
    case Span::Kind::Optimizer: return "optimizer";
    default: return "";
  }
}

/// The bars of one lane by class. A bar thinner than a pixel's half grows until the next one no longer touches it.
std::map<std::string_view, std::vector<std::pair<double, double>>> barsOf(std::vector<Span> spans, double perSecond) {
  std::ranges::stable_sort(spans, {}, &Span::start);
  std::map<std::string_view, std::vector<std::pair<double, double>>> bars;
  std::string_view lastClass;
  for (const Span& span : spans) {
    const std::string_view kind = classOf(span.kind);
    if (kind.empty()) continue;
    const double x = span.start.value * perSecond, width = (span.end - span.start).value * perSecond;
    if (!lastClass.empty()) {
      auto& [lastX, lastWidth] = bars[lastClass].back();
      const bool touches = x - (lastX + lastWidth) < kThinnest;
      if (touches && (lastWidth < kThinnest || width < kThinnest)) {
        lastWidth = std::max(lastWidth, x + width - lastX);
        continue;
      }
    }
    bars[kind].emplace_back(x, width);
    lastClass = kind;
  }
  return bars;
}

std::vector<PipelineGroup> shownGroups(const Plan& plan, std::size_t mostStages) {
  std::vector<PipelineGroup> shown;
  std::size_t stages = 0;
  for (const PipelineGroup& group : pipelineGroups(plan)) {
    stages += plan.pipelines[group.first].stages.size();
    if (!shown.empty() && stages > mostStages) break;
    shown.push_back(group);
  }
  return shown;
}

std::string leftOutText(const Plan& plan, const std::vector<PipelineGroup>& shown) {
  std::size_t pipelines = 0;
  for (const PipelineGroup& group : shown) pipelines += group.count;
  const std::size_t left = plan.pipelines.size() - pipelines;
  return left == 0 ? "" : fmt::format("and {} more pipeline{}, not drawn", left, left == 1 ? "" : "s");
}

std::string memoryHint(std::string_view place, const MemoryUse& use) {
  return fmt::format(
      "{}: {:.2f} of {:.2f} GiB; weights {:.2f}, gradients {:.2f}, optimizer {:.2f}, activations {:.2f}, workspace {:.2f}, "
      "reserved {:.2f}",
      place, gib(use.total()), gib(use.capacity), gib(use.weights), gib(use.gradients), gib(use.optimizer), gib(use.activations),
      gib(use.transient), gib(use.reserved));
}

std::string recomputedText(const Model& model, const Stage& stage) {
  std::string text;
  for (const Recompute& recompute : stage.recompute) {
    if (!text.empty()) text += "; ";
    if (recompute.ops.size() == opsOfLayer(model).size()) text += "everything";
    else
      for (std::size_t i = 0; i < recompute.ops.size(); ++i)
        text += (i == 0 ? "" : " ") + std::string(label(model, recompute.ops[i]));
    if (recompute.units.size() < stage.units.size() - 2)
      text += fmt::format(" in {} of {} units", recompute.units.size(), stage.units.size());
  }
  return text;
}

std::string cardOf(const Plan& plan, const Stage& stage, std::size_t index) {
  std::map<int, int> types;
  for (const DeviceId device : stage.devices) ++types[plan.cluster.typeIndexOf(device)];
  std::string devices;
  for (const auto& [type, count] : types)
    devices += fmt::format("{}{} × {}", devices.empty() ? "" : ", ", count,
                           plan.cluster.deviceTypes[static_cast<std::size_t>(type)].name);
  std::string text = fmt::format(
      R"(<div class="stage"><i class="chip c{}"></i><b>stage {}</b><span>{}</span><span>tp {} × dp {}, {:g} layers</span>)",
      plan.cluster.typeIndexOf(stage.devices.front()) % 6, index, escaped(devices), stage.tp, stage.dp,
      layersIn(plan.model, stage.units));
  if (stage.predicted) {
    const MemoryUse& use = stage.predicted->memory;
    text +=
        fmt::format("<span>{} forward, {} backward</span><span>{:.3g} of {:.3g} GiB</span>", timeText(stage.predicted->forward),
                    timeText(stage.predicted->backward), gib(use.total()), gib(use.capacity));
  }
  if (const std::string recomputed = recomputedText(plan.model, stage); !recomputed.empty())
    text += fmt::format(R"(<span class="dim">recomputes {}</span>)", escaped(recomputed));
  return text + "</div>\n";
}

}  // namespace

Svg timelinePicture(const Evaluation& evaluation, Seconds end) {
  const Plan& plan = evaluation.plan;
  const std::vector<PipelineGroup> groups = shownGroups(plan, kMostLanes);
  const std::string more = leftOutText(plan, groups);
  double height = 2;
  for (const PipelineGroup& group : groups)
    height += kGroupGap + (kLane + kLaneGap) * static_cast<double>(plan.pipelines[group.first].stages.size());
  Svg svg(kLabels + kPlot + 10, height + (more.empty() ? 0 : 18));
  const double perSecond = kPlot / std::max(1e-12, end.value);

  std::map<std::pair<int, int>, std::vector<Span>> spans;  // (pipeline, stage)
  for (const Span& span : evaluation.timeline.spans) {
    const Lane& lane = evaluation.timeline.lanes[static_cast<std::size_t>(span.lane)];
    spans[{lane.pipeline, lane.stage}].push_back(span);
  }
  double y = 2;
  for (const PipelineGroup& group : groups) {
    const Pipeline& pipeline = plan.pipelines[group.first];
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      if (s == 0)
        svg.text(0, y + kLane - 2,
                 group.count == 1 ? fmt::format("pipeline {}", group.first)
                                  : fmt::format("{} × pipeline {}", group.count, group.first),
                 "dim");
      svg.text(kLabels - 8, y + kLane - 2, fmt::format("stage {}", s), "dim", Anchor::End);
      const Seconds whole = plan.predicted ? plan.predicted->iteration : end;
      svg.rect(kLabels, y, whole.value * perSecond, kLane, "wait",
               fmt::format("stage {} on {}: {} of {} busy", s, plan.cluster.typeOf(pipeline.stages[s].devices.front()).name,
                           timeText(evaluation.activity[group.first][s].busy), timeText(whole)));
      for (auto& [kind, bars] : barsOf(spans[{static_cast<int>(group.first), static_cast<int>(s)}], perSecond)) {
        for (auto& [x, width] : bars) x += kLabels;
        svg.bars(y, kLane, bars, kind);
      }
      y += kLane + kLaneGap;
    }
    y += kGroupGap;
  }
  if (!more.empty()) svg.text(kLabels, y + 10, more, "dim");
  return svg;
}

Svg stepPicture(const Timeline& predicted, const Timeline& measured, Seconds end) {
  struct Row {
    const Timeline* timeline;
    int lane;
  };
  std::vector<Row> rows;
  std::size_t leftOut = 0;
  for (std::size_t p = 0; p < predicted.lanes.size(); ++p) {
    const Lane& stage = predicted.lanes[p];
    std::vector<Row> ofStage = {{&predicted, static_cast<int>(p)}};
    for (std::size_t m = 0; m < measured.lanes.size(); ++m) {
      if (measured.lanes[m].pipeline == stage.pipeline && measured.lanes[m].stage == stage.stage) ofStage.push_back({&measured, static_cast<int>(m)});
    }
    if (!rows.empty() && rows.size() + ofStage.size() > 2 * kMostLanes) ++leftOut;
    else rows.insert(rows.end(), ofStage.begin(), ofStage.end());
  }
  const auto isFirst = [](const Row& row) { return row.lane == 0 || row.timeline->lanes[static_cast<std::size_t>(row.lane)].stage == 0; };
  double height = 2 + (kLane + kLaneGap) * static_cast<double>(rows.size());
  for (const Row& row : rows) height += row.timeline == &predicted ? kGroupGap / 2 * (isFirst(row) ? 2 : 1) : 0;
  Svg svg(kLabels + kPlot + 10, height + (leftOut == 0 ? 0 : 18));
  const double perSecond = kPlot / std::max(1e-12, end.value);
  const std::vector<LaneTimes> ofPredicted = laneTimes(predicted), ofMeasured = laneTimes(measured);
  double y = 2;
  for (const Row& row : rows) {
    const Lane& lane = row.timeline->lanes[static_cast<std::size_t>(row.lane)];
    const bool isPredicted = row.timeline == &predicted;
    if (isPredicted) y += kGroupGap / 2 * (isFirst(row) ? 2 : 1);
    if (isPredicted) svg.text(0, y + kLane - 2, fmt::format("pipeline {}, stage {}", lane.pipeline, lane.stage));
    else svg.text(kLabels - 8, y + kLane - 2, lane.name, "dim", Anchor::End);
    const LaneTimes& times = (isPredicted ? ofPredicted : ofMeasured)[static_cast<std::size_t>(row.lane)];
    svg.rect(kLabels, y, times.end.value * perSecond, kLane, "wait",
             fmt::format("{}, {}: forward {}, backward {}, waiting {}, sync {}, optimizer {}", lane.name, isPredicted ? "predicted" : "measured", timeText(times.forward),
                         timeText(times.backward), timeText(times.wait), timeText(times.sync), timeText(times.optimizer)));
    std::vector<Span> spans;
    std::ranges::copy_if(row.timeline->spans, std::back_inserter(spans), [&](const Span& span) { return span.lane == row.lane; });
    for (auto& [kind, bars] : barsOf(spans, perSecond)) {
      for (auto& [x, width] : bars) x += kLabels;
      svg.bars(y, kLane, bars, kind);
    }
    y += kLane + kLaneGap;
  }
  if (leftOut > 0) svg.text(kLabels, y + 10, fmt::format("and {} more stage{}, not drawn", leftOut, leftOut == 1 ? "" : "s"), "dim");
  return svg;
}

std::vector<std::pair<std::string_view, std::string_view>> timelineLegend() {
  return {{"forward", "forward"},
          {"backward", "backward"},
          {"wait", "waiting"},
          {"sync", "gradient sync"},
          {"optimizer", "optimizer"}};
}

std::vector<std::pair<std::string_view, std::string_view>> memoryLegend() {
  return {{"s0", "weights"},     {"s1", "gradients"}, {"s2", "optimizer"},
          {"s3", "activations"}, {"s4", "workspace"}, {"s5", "reserved"}};
}

Bytes memoryTop(const Plan& plan) {
  Bytes top;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      if (stage.predicted) top = std::max({top, stage.predicted->memory.capacity, stage.predicted->memory.total()});
    }
  }
  return top;
}

Svg memoryPicture(const Plan& plan, Bytes most) {
  constexpr double kLeft = 46, kHeight = 150, kTop = 10, kBottom = 34, kBar = 20, kGap = 6;
  const std::vector<PipelineGroup> groups = shownGroups(plan, kMostBars);
  double width = kLeft + 12;
  for (const PipelineGroup& group : groups)
    width += kGroupGap + (kBar + kGap) * static_cast<double>(plan.pipelines[group.first].stages.size());
  const std::string more = leftOutText(plan, groups);
  Svg svg(std::max(width, kLeft + 20 + textWidth(more)), kTop + kHeight + kBottom);
  const double perByte = kHeight / static_cast<double>(std::max<std::int64_t>(1, most.value));
  const auto yOf = [&](Bytes bytes) { return kTop + kHeight - static_cast<double>(bytes.value) * perByte; };
  for (const double part : {0.0, 0.5, 1.0}) {
    const double y = kTop + kHeight * (1 - part);
    svg.line(kLeft, y, svg.width(), y, "grid");
    svg.text(kLeft - 6, y + 4, fmt::format("{:.3g}", part * gib(most)), "dim", Anchor::End);
  }
  svg.text(0, kTop + kHeight / 4 + 4, "GiB", "dim");
  double x = kLeft + kGap;
  for (const PipelineGroup& group : groups) {
    const Pipeline& pipeline = plan.pipelines[group.first];
    const double begin = x;
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s, x += kBar + kGap) {
      if (!pipeline.stages[s].predicted) continue;
      const MemoryUse& use = pipeline.stages[s].predicted->memory;
      const std::string hint = memoryHint(fmt::format("{}, stage {}", nameOf(group), s), use);
      Bytes below;
      const std::array<Bytes, 6> parts = {use.weights,     use.gradients, use.optimizer,
                                          use.activations, use.transient, use.reserved};
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const Bytes above = below + parts[i];
        svg.rect(x, yOf(above), kBar, yOf(below) - yOf(above), fmt::format("s{}", i), hint);
        below = above;
      }
      svg.line(x - kGap / 2, yOf(use.capacity), x + kBar + kGap / 2, yOf(use.capacity), "limit");
    }
    svg.line(begin, kTop + kHeight + 4, x - kGap, kTop + kHeight + 4, "axis");
    svg.text(begin, kTop + kHeight + 17,
             group.count == 1 ? fmt::format("{}", group.first) : fmt::format("{}–{}", group.first, group.first + group.count - 1),
             "dim");
    x += kGroupGap;
  }
  if (!more.empty()) svg.text(kLeft, kTop + kHeight + 31, more, "dim");
  return svg;
}

std::string stageCards(const Plan& plan) {
  std::string text;
  const auto groups = shownGroups(plan, kMostCards);
  for (const PipelineGroup& group : groups) {
    const Pipeline& pipeline = plan.pipelines[group.first];
    text += fmt::format(R"(<p class="pipe"><b>{}</b> {} samples in {} micro-batches of {}{}</p><div class="stages">)",
                        nameOf(group), pipeline.localBatch, pipeline.microBatchCount(), pipeline.microBatch,
                        pipeline.predictedTime ? fmt::format(", {}", timeText(*pipeline.predictedTime)) : "");
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) text += cardOf(plan, pipeline.stages[s], s);
    text += "</div>\n";
  }
  if (const std::string more = leftOutText(plan, groups); !more.empty()) text += fmt::format(R"(<p class="dim">{}</p>)", more);
  return text;
}

}  // namespace evenkeel::report
