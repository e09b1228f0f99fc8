// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "core/report/chart.h"
#include "core/report/compared.h"
#include "core/search/search.h"

namespace evenkeel::cli {

/// Numbers, texts and nulls (no plan) in rows.
struct FigureTable {
  std::string name;  // of its file: "model-size"
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<Json>> rows;
};

struct FigurePicture {
  std::string name, label;
  report::Svg svg;
};

/// What the paper says of a number, and ours; `reason` is the most likely one where ours leaves its range.
struct PaperClaim {
  std::string what;
  double low = 0, high = 0;
  std::vector<double> ours;
  std::string reason;
};

/// A figure of the paper (arXiv 2610.22035) made again from our cost model.
struct Figure {
  std::string name, title;
  std::string setting;  // cluster, model, batch: what was planned
  std::vector<FigureTable> tables;
  std::vector<FigurePicture> pictures;
  std::vector<PaperClaim> claims;
};

/// Runs planners for a figure, each with the same limit, and says on stderr how far it is.
class Lab {
 public:
  Lab(bool isQuick, Budget budget, std::stop_token stop)
      : isQuick_(isQuick), budget_(std::move(budget)), stop_(std::move(stop)) {}

  [[nodiscard]] bool isQuick() const { return isQuick_; }
  [[nodiscard]] bool isStopped() const { return stop_.stop_requested(); }
  /// What the planner makes of the problem; an Error that says why where there is no plan.
  [[nodiscard]] report::Compared plan(const Problem& problem, const std::string& planner, PlannerOptions options = {},
                                      std::vector<SearchPoint>* points = nullptr) const;

 private:
  bool isQuick_;
  Budget budget_;
  std::stop_token stop_;
};

/// A problem of the paper's kind: sequence and batch as given, everything else by default. The names must be known.
[[nodiscard]] Problem paperProblem(const std::string& cluster, const std::string& model, std::int64_t globalBatch,
                                   std::int64_t sequence = 2048);

/// Options of planner metis that ask what the paper ran: public Metis with its faults, and the first of its plans that can be run. On
/// many devices its groups are not permuted, so that it ends within minutes.
[[nodiscard]] PlannerOptions asPublished(const Problem& problem);

/// How evenly a plan spreads its compute.
struct Balance {
  double latencyRatio = 1;  // busiest over idlest stage, by compute time in one iteration
  double idleCompute = 0;   // of all used devices, while the busiest one computes
  double bubbles = 0;
  Seconds compute;  // of the busiest stage
};
[[nodiscard]] Balance balanceOf(const Evaluation& evaluation);

// One function a figure.
[[nodiscard]] Figure reproduceFig2(const Lab& lab);    // latency ratio, idle compute, bubbles against model size and mismatch
[[nodiscard]] Figure reproduceFig9(const Lab& lab);    // speed-ups and search times over both baselines
[[nodiscard]] Figure reproduceFig10(const Lab& lab);   // compute time and bubbles, 13B
[[nodiscard]] Figure reproduceFig11(const Lab& lab);   // scaling over devices, global batch, sequence
[[nodiscard]] Figure reproduceFig12(const Lab& lab);   // recomputation per stage against global
[[nodiscard]] Figure reproduceFig13(const Lab& lab);   // variance and throughput, alpha, sync modes
[[nodiscard]] Figure reproduceTable3(const Lab& lab);  // a plan as a picture

/// A number of a plan as a cell; null where there is none.
[[nodiscard]] Json cell(const std::optional<double>& value);
[[nodiscard]] std::optional<double> iterationOf(const report::Compared& one);
/// "out of memory", "stopped", "" where there is a plan.
[[nodiscard]] std::string shortReason(const report::Compared& one);

}  // namespace evenkeel::cli
