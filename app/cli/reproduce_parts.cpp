// SPDX-License-Identifier: GPL-3.0-or-later
// Figures 12 and 13 and table 3: what the parts of the method are worth, and a plan as a picture.
#include <fmt/format.h>

#include <numeric>

#include "app/cli/reproduce.h"
#include "core/cost/sync.h"
#include "core/profile/analytic_profile.h"
#include "core/report/format.h"
#include "core/report/pipeline_groups.h"
#include "core/report/plan_pictures.h"

namespace evenkeel::cli {
namespace {

/// Peak memory over all devices, and its mean, in GiB.
std::pair<double, double> memoryOf(const Evaluation& evaluation) {
  double peak = 0, sum = 0;
  for (const auto& [device, bytes] : evaluation.peakBytes) {
    peak = std::max(peak, gib(bytes));
    sum += gib(bytes);
  }
  return {peak, sum / static_cast<double>(std::max<std::size_t>(1, evaluation.peakBytes.size()))};
}

std::optional<double> percentLess(const std::optional<double>& part, const std::optional<double>& whole) {
  if (!part || !whole) return std::nullopt;
  return 100 * (1 - *part / *whole);
}

FigureTable alphaTable(const Lab& lab, const Problem& problem, report::Chart& times, report::Chart& plans) {
  FigureTable table{
      "alpha", "search against alpha of early skipping", {"alpha", "search s", "plans assessed", "iteration s", "state"}, {}};
  times = {"Search time against alpha", "alpha", "s", {}, {{"search", {}, false}}, {}, true};
  plans = {"Iteration of the plan against alpha", "alpha", "s", {}, {{"iteration", {}, false}}, {}, true};
  for (const char* alpha : {"0.5", "1", "1.5", "2", "3"}) {
    if (lab.isStopped()) break;
    const report::Compared one = lab.plan(problem, "eth", {{"alpha", alpha}});
    const Json evaluated = one.evaluation ? Json(one.evaluation->plan.search.value("evaluated", std::int64_t{0})) : Json(nullptr);
    table.rows.push_back({alpha, one.search.value, evaluated, cell(iterationOf(one)), shortReason(one)});
    times.categories.push_back(alpha);
    times.series[0].values.emplace_back(one.search.value);
    plans.categories.push_back(alpha);
    plans.series[0].values.push_back(iterationOf(one));
  }
  return table;
}

/// The same pipelines under each way of summing gradients.
FigureTable syncTable(const Evaluation& evaluation, report::Chart& chart, std::vector<double>& overTensor,
                      std::vector<double>& overDevice) {
  FigureTable table{
      "sync",
      "one plan under the three ways of summing gradients",
      {"mode", "sync ms", "against block", "rings of the last device", "GiB it sends", "gradient buffers GiB", "peak memory GiB"},
      {}};
  chart = {"Gradient sync of one plan", "mode", "ms", {}, {{"sync", {}, false}}, {}, true};
  std::optional<double> block;
  for (const GradientSync mode : {GradientSync::Block, GradientSync::Tensor, GradientSync::Device}) {
    Plan plan = evaluation.plan;
    plan.training.gradientSync = mode;
    const AnalyticProfile profile(plan.model, plan.training);
    const CostModel model(plan.cluster, plan.model, plan.training, profile);
    const Seconds time = syncTime(model, plan.pipelines).busiest;
    const std::vector<SyncPart> parts = slowestSync(model, plan.pipelines).parts;
    const double sent =
        std::accumulate(parts.begin(), parts.end(), 0.0, [](double sum, const SyncPart& part) { return sum + gib(part.bytes); });
    const Evaluation again = evaluate(model, plan, {}, false);
    double gradients = 0;
    for (const Pipeline& pipeline : again.plan.pipelines) {
      for (const Stage& stage : pipeline.stages) {
        if (stage.predicted) gradients += gib(stage.predicted->memory.gradients) * static_cast<double>(stage.devices.size());
      }
    }
    const double ms = milliseconds(time);
    if (!block) block = ms;
    const auto relative = *block > 0 ? std::optional(ms / *block) : std::nullopt;
    table.rows.push_back({std::string(name(mode)), ms, cell(relative), static_cast<std::int64_t>(parts.size()), sent, gradients,
                          memoryOf(again).first});
    chart.categories.emplace_back(name(mode));
    chart.series[0].values.emplace_back(ms);
    if (relative && mode == GradientSync::Tensor) overTensor.push_back(*relative);
    if (relative && mode == GradientSync::Device) overDevice.push_back(*relative);
  }
  return table;
}

}  // namespace

Figure reproduceFig12(const Lab& lab) {
  Figure figure{"fig12", "Figure 12: recomputation by stage against one set for all", "", {}, {}, {}};
  figure.setting = lab.isQuick() ? "eth; GPT-3 1.3B, 4 + 4 Ascend 910B2/910B4, global batch 64, sequence 2048"
                                 : "eth; half Ascend 910B2, half 910B4 in nodes of 8, global batch 1024, sequence 2048";
  std::vector<std::pair<std::string, Problem>> problems;
  if (lab.isQuick()) problems.emplace_back("1.3b, 8", paperProblem("1x4:Ascend-910B2,1x4:Ascend-910B4", "gpt3-1.3b", 64));
  else {
    for (const auto& [model, nodes] :
         {std::pair{"gpt3-6.7b", 2}, {"gpt3-13b", 2}, {"gpt3-13b", 4}, {"gpt3-13b", 8}, {"gpt3-30b", 8}})
      problems.emplace_back(fmt::format("{}, {}", std::string(model).substr(5), 16 * nodes),
                            paperProblem(fmt::format("{0}x8:Ascend-910B2,{0}x8:Ascend-910B4", nodes), model, 1024));
  }
  FigureTable table{"recompute",
                    "what is recomputed",
                    {"model, devices", "scope", "iteration s", "peak GiB", "mean peak GiB", "less peak than global %",
                     "less mean than global %", "state"},
                    {}};
  report::Chart memory{"Mean peak memory of the devices", "model, devices", "GiB", {}, {}, {}, true},
      time{"Iteration", "model, devices", "s", {}, {}, {}, true};
  for (const std::string scope : {"global", "stage", "none"}) {
    memory.series.push_back({scope, {}, false});
    time.series.push_back({scope, {}, false});
  }
  std::vector<double> saved;
  for (const auto& [point, problem] : problems) {
    if (lab.isStopped()) break;
    memory.categories.push_back(point);
    time.categories.push_back(point);
    std::vector<std::optional<double>> peaks, means;  // by scope, global first
    for (report::Series& series : memory.series) {
      const report::Compared one = lab.plan(problem, "eth", {{"recompute", series.name}});
      peaks.emplace_back();
      means.emplace_back();
      if (one.evaluation) std::tie(peaks.back(), means.back()) = memoryOf(*one.evaluation);
      const auto lessPeak = percentLess(peaks.back(), peaks.front());
      series.values.push_back(means.back());
      time.series[peaks.size() - 1].values.push_back(iterationOf(one));
      table.rows.push_back({point, series.name, cell(iterationOf(one)), cell(peaks.back()), cell(means.back()), cell(lessPeak),
                            cell(percentLess(means.back(), means.front())), shortReason(one)});
      if (lessPeak && series.name == "stage") saved.push_back(*lessPeak);
    }
  }
  figure.tables = {std::move(table)};
  figure.pictures = {{"memory", memory.title, report::barChart(memory)}, {"time", time.title, report::barChart(time)}};
  figure.claims = {{"less peak memory by stage than global, %", 1.8, 5.7, saved,
                    "our eth spends memory that is free on time: each stage recomputes only as much as it must to fit, so that "
                    "peaks stay near the capacity in both cases and the gain shows as a shorter iteration"}};
  return figure;
}

Figure reproduceFig13(const Lab& lab) {
  Figure figure{"fig13", "Figure 13: variance and throughput, early skipping, gradient sync", "", {}, {}, {}};
  const bool quick = lab.isQuick();
  const Problem problem = quick ? paperProblem("1x4:Ascend-910B2,1x4:Ascend-910B4", "gpt3-1.3b", 64)
                                : paperProblem("4x8:Ascend-910B2,4x8:Ascend-910B4", "gpt3-13b", 1024);
  figure.setting = quick ? "eth; GPT-3 1.3B, 4 + 4 Ascend 910B2/910B4, global batch 64, sequence 2048"
                         : "eth; GPT-3 13B, 32 + 32 Ascend 910B2/910B4 in nodes of 8, global batch 1024, sequence 2048";
  std::vector<SearchPoint> points;
  const report::Compared base = lab.plan(problem, "eth", {{"skip", "off"}}, &points);
  FigureTable variance{"variance",
                       "groupings that eth looked at, skipping nothing",
                       {"pipelines", "inter variance", "intra variance", "samples/s"},
                       {}};
  report::Cloud inter{"between pipelines", {}}, intra{"inside pipelines", {}};
  for (const SearchPoint& point : points) {
    variance.rows.push_back({point.pipelines, point.interVariance, point.intraVariance, point.samplesPerSecond});
    inter.points.emplace_back(point.interVariance, point.samplesPerSecond);
    intra.points.emplace_back(point.intraVariance, point.samplesPerSecond);
  }
  figure.pictures.push_back({"variance", "Variance and throughput of the groupings",
                             report::scatterChart("Variance and throughput of the groupings",
                                                  "variance of compute over squared mean", "samples/s", {inter, intra})});
  report::Chart times, plans, sync;
  figure.tables.push_back(alphaTable(lab, problem, times, plans));
  figure.pictures.push_back({"alpha-search", times.title, report::lineChart(times)});
  figure.pictures.push_back({"alpha-plan", plans.title, report::lineChart(plans)});
  std::vector<double> overTensor, overDevice;
  if (base.evaluation) {
    figure.tables.push_back(syncTable(*base.evaluation, sync, overTensor, overDevice));
    figure.pictures.push_back({"sync", sync.title, report::barChart(sync)});
  }
  figure.tables.push_back(std::move(variance));
  figure.claims = {
      {"time of tensor-wise over block-wise sync", 1.38, 1.71, overTensor,
       "a collective costs us the latency of its link; runs also pay its launch, and the lower bandwidth of small messages"},
      {"time of device-wise over block-wise sync", 1.56, 2.74, overDevice,
       "unlike cuts connect all stages of this plan, so that every device's buffer is padded to nearly the whole model; plans "
       "with more common cuts pad less"}};
  return figure;
}

Figure reproduceTable3(const Lab& lab) {
  Figure figure{"table3", "Table 3: a plan of two unlike pipelines", "", {}, {}, {}};
  const bool quick = lab.isQuick();
  const Problem problem = quick ? paperProblem("1x2:Ascend-910B2,1x2:Ascend-910B4", "gpt3-1.3b", 64)
                                : paperProblem("1x8:Ascend-910B2,1x8:Ascend-910B4", "gpt3-6.7b", 1024);
  figure.setting = quick ? "GPT-3 1.3B, 2 Ascend 910B2 and 2 910B4, global batch 64; at most 2 pipelines"
                         : "GPT-3 6.7B, 8 Ascend 910B2 and 8 910B4, global batch 1024; at most 2 pipelines. The paper names "
                           "neither model nor cluster: a picture, no target";
  const report::Compared one = lab.plan(problem, "eth", {{"pipelines", "2"}});
  FigureTable table{"plan",
                    "the plan of eth",
                    {"pipeline", "samples", "micro-batch", "stage", "device", "tp x dp", "layers", "recomputes", "memory GiB",
                     "forward ms", "backward ms"},
                    {}};
  if (one.evaluation) {
    const Plan& plan = one.evaluation->plan;
    for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
      const Pipeline& pipeline = plan.pipelines[p];
      for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
        const Stage& stage = pipeline.stages[s];
        std::string recomputes;
        for (const Recompute& recompute : stage.recompute) {
          recomputes += recomputes.empty() ? "" : "; ";
          for (std::size_t i = 0; i < recompute.ops.size(); ++i)
            recomputes += (i > 0 ? " " : "") + std::string(label(plan.model, recompute.ops[i]));
          recomputes += fmt::format(" [{}, {})", recompute.units.first, recompute.units.last);
        }
        table.rows.push_back({static_cast<std::int64_t>(p), pipeline.localBatch, pipeline.microBatch,
                              static_cast<std::int64_t>(s),
                              fmt::format("{} x {}", stage.devices.size(), plan.cluster.typeOf(stage.devices.front()).name),
                              fmt::format("{} x {}", stage.tp, stage.dp), layersIn(plan.model, stage.units), recomputes,
                              gib(stage.predicted->memory.total()), milliseconds(stage.predicted->forward),
                              milliseconds(stage.predicted->backward)});
      }
    }
    figure.pictures.push_back(
        {"timeline", "one iteration of the plan", report::timelinePicture(*one.evaluation, plan.predicted->iteration)});
    figure.pictures.push_back({"memory", "memory of the plan's stages", report::memoryPicture(plan, report::memoryTop(plan))});
  }
  figure.tables = {std::move(table)};
  return figure;
}

}  // namespace evenkeel::cli
