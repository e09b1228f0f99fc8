// SPDX-License-Identifier: GPL-3.0-or-later
// Figures 2 and 10: how evenly the planners spread compute.
#include <fmt/format.h>

#include "app/cli/reproduce.h"

namespace evenkeel::cli {
namespace {

const std::string kAsPublished = "metis, as published";

struct Line {
  std::string name, planner;
  PlannerOptions options;
};

const std::vector<Line>& lines() {
  static const std::vector<Line> all = {{"hexiscale", "hexiscale", {}},
                                        {"metis", "metis", {}},
                                        {"metis, unlimited memory", "metis", {{"memory", "ignore"}}},
                                        {"eth", "eth", {}},
                                        {kAsPublished, "metis", {}}};
  return all;
}

/// One metric of all lines over the points of an axis.
struct Sweep {
  std::vector<std::string> points;
  std::vector<std::vector<std::optional<Balance>>> balance;  // by line, point
  FigureTable table;
};

Sweep sweepOver(const Lab& lab, const std::string& axis, const std::vector<std::pair<std::string, Problem>>& problems) {
  Sweep sweep;
  sweep.balance.resize(lines().size());
  sweep.table.columns = {axis, "planner", "latency ratio", "idle compute %", "bubbles %", "iteration s", "state"};
  for (const auto& [point, problem] : problems) {
    if (lab.isStopped()) break;
    sweep.points.push_back(point);
    for (std::size_t i = 0; i < lines().size(); ++i) {
      const bool isPublished = lines()[i].name == kAsPublished;
      const report::Compared one = lab.plan(problem, lines()[i].planner, isPublished ? asPublished(problem) : lines()[i].options);
      std::optional<Balance> balance;
      if (one.evaluation) balance = balanceOf(*one.evaluation);
      sweep.table.rows.push_back({point, lines()[i].name, cell(balance ? std::optional(balance->latencyRatio) : std::nullopt),
                                  cell(balance ? std::optional(100 * balance->idleCompute) : std::nullopt),
                                  cell(balance ? std::optional(100 * balance->bubbles) : std::nullopt), cell(iterationOf(one)),
                                  shortReason(one)});
      sweep.balance[i].push_back(balance);
    }
  }
  return sweep;
}

report::Chart chartOf(const Sweep& sweep, const std::string& title, const std::string& xLabel, const std::string& yLabel,
                      double (*metric)(const Balance&)) {
  report::Chart chart{title, xLabel, yLabel, sweep.points, {}, {}, true};
  for (std::size_t i = 0; i < lines().size(); ++i) {
    report::Series series{lines()[i].name, {}, lines()[i].name == "metis, unlimited memory"};
    for (const auto& balance : sweep.balance[i])
      series.values.push_back(balance ? std::optional(metric(*balance)) : std::nullopt);
    chart.series.push_back(std::move(series));
  }
  return chart;
}

std::vector<double> ratiosOf(const Sweep& sweep, std::size_t line) {
  std::vector<double> ratios;
  for (const auto& balance : sweep.balance[line]) {
    if (balance) ratios.push_back(balance->latencyRatio);
  }
  return ratios;
}

void addPictures(Figure& figure, const Sweep& sweep, const std::string& name, const std::string& by, const std::string& xLabel) {
  auto latency =
      chartOf(sweep, "Busiest over idlest stage, by " + by, xLabel, "ratio", [](const Balance& b) { return b.latencyRatio; });
  latency.fromZero = false;
  figure.pictures.push_back({name + "-latency", latency.title, report::lineChart(latency)});
  const auto idle =
      chartOf(sweep, "Idle compute, by " + by, xLabel, "% of device time", [](const Balance& b) { return 100 * b.idleCompute; });
  figure.pictures.push_back({name + "-idle", idle.title, report::lineChart(idle)});
  const auto bubbles =
      chartOf(sweep, "Bubbles, by " + by, xLabel, "% of device time", [](const Balance& b) { return 100 * b.bubbles; });
  figure.pictures.push_back({name + "-bubbles", bubbles.title, report::lineChart(bubbles)});
}

}  // namespace

Figure reproduceFig2(const Lab& lab) {
  Figure figure{"fig2", "Figure 2: unbalanced stages against model size and compute mismatch", "", {}, {}, {}};
  std::vector<std::pair<std::string, Problem>> sizes, mismatches;
  if (lab.isQuick()) {
    figure.setting =
        "4 + 4 Ascend 910B2/910B4, GPT-3 350M and 1.3B, global batch 64, sequence 2048; mismatch: 4 + 4 Ascend 910B2, GPT-3 1.3B";
    for (const char* model : {"gpt3-350m", "gpt3-1.3b"})
      sizes.emplace_back(model, paperProblem("1x4:Ascend-910B2,1x4:Ascend-910B4", model, 64));
    for (const double mismatch : {1.0, 1.9})
      mismatches.emplace_back(
          fmt::format("{:.1f}", mismatch),
          paperProblem(fmt::format("1x4:Ascend-910B2,1x4:Ascend-910B2@{:.4f}", 1 / mismatch), "gpt3-1.3b", 64));
  } else {
    figure.setting =
        "half Ascend 910B2, half 910B4 in nodes of 8: 16 devices for 350M, 32 for 1.3B and 2.7B, 64 for 6.7B and 13B, 128 for "
        "30B and 66B, 256 for 175B; global batch 1024, sequence 2048. Mismatch: 32 + 32 Ascend 910B2, half of them slowed down, "
        "GPT-3 13B";
    for (const auto& [model, nodes] : {std::pair{"gpt3-350m", 1},
                                       {"gpt3-1.3b", 2},
                                       {"gpt3-2.7b", 2},
                                       {"gpt3-6.7b", 4},
                                       {"gpt3-13b", 4},
                                       {"gpt3-30b", 8},
                                       {"gpt3-66b", 8},
                                       {"gpt3-175b", 16}})
      sizes.emplace_back(std::string(model).substr(5),
                         paperProblem(fmt::format("{0}x8:Ascend-910B2,{0}x8:Ascend-910B4", nodes), model, 1024));
    for (const double mismatch : {1.0, 1.2, 1.4, 1.6, 1.9})
      mismatches.emplace_back(
          fmt::format("{:.1f}", mismatch),
          paperProblem(fmt::format("4x8:Ascend-910B2,4x8:Ascend-910B2@{:.4f}", 1 / mismatch), "gpt3-13b", 1024));
  }
  Sweep bySize = sweepOver(lab, "model", sizes);
  bySize.table.name = "model-size";
  bySize.table.title = "against model size";
  addPictures(figure, bySize, "model-size", "model size", "model");
  Sweep byMismatch = sweepOver(lab, "mismatch", mismatches);
  byMismatch.table.name = "mismatch";
  byMismatch.table.title = "against the ratio of the two types' speeds";
  addPictures(figure, byMismatch, "mismatch", "compute mismatch", "fast over slow device");
  const std::string coarse =
      "the mended Metis searches every micro-batch and counts memory with ZeRO-1, so that fewer and longer stages fit, which "
      "divide more evenly";
  const std::string asPublished =
      "of its plans only those that can be run count here: those that lose layers fall out, and with ZeRO-1 few and long stages fit";
  figure.claims = {
      {"latency ratio of HexiScale over model sizes", 1.34, 1.92, ratiosOf(bySize, 0),
       "layers go by memory, of which 910B2 has twice as much as 910B4 at 1.34 times its speed; how far that shows depends on "
       "how many layers there are to round"},
      {"latency ratio of Metis over model sizes", 1.27, 1.87, ratiosOf(bySize, 1), coarse},
      {"latency ratio of Metis as published over model sizes", 1.27, 1.87, ratiosOf(bySize, 4), asPublished},
      {"latency ratio of Metis with unlimited memory", 1.09, 1.13, ratiosOf(bySize, 2),
       "few long stages divide whole layers more evenly than many short ones; the paper does not say how many its runs had"},
      {"latency ratio of data balancing over mismatches, 13B", 1.09, 1.17, ratiosOf(byMismatch, 3),
       "our plans have few stages, each of many half layers, which divide evenly"},
      {"latency ratio of Metis over mismatches, 13B", 1.11, 1.87, ratiosOf(byMismatch, 1), coarse},
      {"latency ratio of Metis as published over mismatches, 13B", 1.11, 1.87, ratiosOf(byMismatch, 4), asPublished}};
  figure.tables = {std::move(bySize.table), std::move(byMismatch.table)};
  return figure;
}

Figure reproduceFig10(const Lab& lab) {
  const bool quick = lab.isQuick();
  Figure figure{"fig10", "Figure 10: compute time and bubbles, GPT-3 13B", "", {}, {}, {}};
  figure.setting = quick ? "4 + 4 Ascend 910B2/910B4, GPT-3 1.3B, global batch 64, sequence 2048"
                         : "GPT-3 13B, global batch 1024, sequence 2048, 64 + 64 devices in nodes of 8";
  const std::vector<std::pair<std::string, std::string>> clusters =
      quick ? std::vector<std::pair<std::string, std::string>>{{"B2/B4", "1x4:Ascend-910B2,1x4:Ascend-910B4"}}
            : std::vector<std::pair<std::string, std::string>>{{"B2/B3", "8x8:Ascend-910B2,8x8:Ascend-910B3"},
                                                               {"B2/B4", "8x8:Ascend-910B2,8x8:Ascend-910B4"},
                                                               {"A100/3090", "8x8:A100-80-SXM,8x8:RTX3090"}};
  FigureTable table{"compute",
                    "compute of the busiest stage, and bubbles of all devices",
                    {"cluster", "planner", "compute s", "bubbles %", "compute against eth", "bubbles against eth", "state"},
                    {}};
  report::Chart compute{"Compute time of the busiest stage", "cluster", "s", {}, {}, {}, true},
      bubbles{"Bubbles", "cluster", "% of device time", {}, {}, {}, true};
  std::vector<double> fasterThanMetis, fasterThanHexiscale, bubblesOfMetis, bubblesOfHexiscale;
  for (const std::string planner : {"hexiscale", "metis", "eth"}) {
    compute.series.push_back({planner, {}, false});
    bubbles.series.push_back({planner, {}, false});
  }
  for (const auto& [name, cluster] : clusters) {
    if (lab.isStopped()) break;
    const Problem problem = paperProblem(cluster, quick ? "gpt3-1.3b" : "gpt3-13b", quick ? 64 : 1024);
    std::vector<std::optional<Balance>> balances;
    std::vector<std::string> states;
    for (const report::Series& series : compute.series) {
      const report::Compared one = lab.plan(problem, series.name);
      balances.push_back(one.evaluation ? std::optional(balanceOf(*one.evaluation)) : std::nullopt);
      states.push_back(shortReason(one));
    }
    const auto& eth = balances.back();
    compute.categories.push_back(name);
    bubbles.categories.push_back(name);
    for (std::size_t i = 0; i < balances.size(); ++i) {
      const auto& one = balances[i];
      compute.series[i].values.push_back(one ? std::optional(one->compute.value) : std::nullopt);
      bubbles.series[i].values.push_back(one ? std::optional(100 * one->bubbles) : std::nullopt);
      const auto relative = one && eth ? std::optional(one->compute / eth->compute) : std::nullopt;
      const auto relativeBubbles = one && eth && eth->bubbles > 0 ? std::optional(one->bubbles / eth->bubbles) : std::nullopt;
      table.rows.push_back({name, compute.series[i].name, cell(compute.series[i].values.back()),
                            cell(bubbles.series[i].values.back()), cell(relative), cell(relativeBubbles), states[i]});
      if (!relative || i + 1 == balances.size()) continue;
      (i == 1 ? fasterThanMetis : fasterThanHexiscale).push_back(100 * (1 - 1 / *relative));
      if (relativeBubbles) (i == 1 ? bubblesOfMetis : bubblesOfHexiscale).push_back(100 / *relativeBubbles);
    }
  }
  figure.tables = {std::move(table)};
  figure.pictures = {{"compute", compute.title, report::barChart(compute)},
                     {"bubbles", bubbles.title, report::barChart(bubbles)}};
  const std::string reason =
      "the mended Metis searches every micro-batch and order of types, so that it trades bubbles against compute; the paper "
      "gives one cluster only";
  figure.claims = {{"compute of eth less than Metis's, %", 30, 30, fasterThanMetis, reason},
                   {"compute of eth less than HexiScale's, %", 40, 40, fasterThanHexiscale,
                    "HexiScale recomputes everything (a third more compute) and divides layers by memory"},
                   {"bubbles of eth against Metis's, %", 75, 75, bubblesOfMetis, reason},
                   {"bubbles of eth against HexiScale's, %", 60, 60, bubblesOfHexiscale,
                    "how uneven HexiScale's stages are depends on the memory of the cards; the paper gives one cluster only"}};
  return figure;
}

}  // namespace evenkeel::cli
