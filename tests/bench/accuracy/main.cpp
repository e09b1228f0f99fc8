// SPDX-License-Identifier: GPL-3.0-or-later
// bench_accuracy [--runs FILE] [--json] [--predict]: our predictions beside what others measured. The data are not ours and not
// part of the project: EVENKEEL_REFERENCE_DATA names their folder.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string_view>

#include "core/base/json.h"
#include "tests/bench/accuracy/e2e.h"
#include "tests/bench/accuracy/predict_run.h"
#include "tests/bench/accuracy/v100.h"
#include "tests/support/reference_data.h"

namespace {

using namespace evenkeel;
using namespace evenkeel::accuracy;

struct Options {
  std::string runs;
  bool asJson = false, predict = false;
};

struct Row {
  MeasuredRun run;
  RunPrediction prediction;
};

double errorOf(double predicted, double measured) { return predicted / measured - 1; }

/// Errors of one set, as fractions.
struct SetErrors {
  int rows = 0, times = 0, memories = 0;
  double timeSum = 0, timeMost = 0, memorySum = 0, memoryUnder = 0;

  void add(const Row& row) {
    if (row.run.time || row.run.peak) ++rows;
    if (row.run.time) {
      const double error = std::abs(errorOf(row.prediction.time.value, row.run.time->value));
      ++times;
      timeSum += error;
      timeMost = std::max(timeMost, error);
    }
    if (row.run.peak) {
      const double error = row.prediction.peak / *row.run.peak - 1;
      ++memories;
      memorySum += std::abs(error);
      memoryUnder = std::max(memoryUnder, -error);
    }
  }
  [[nodiscard]] Json json() const {
    const auto orNull = [](bool known, double value) { return known ? Json(rounded(value)) : Json(nullptr); };
    return {{"rows", rows},
            {"time_mean_error", orNull(times > 0, timeSum / times)},
            {"time_max_error", orNull(times > 0, timeMost)},
            {"memory_mean_error", orNull(memories > 0, memorySum / memories)},
            {"memory_worst_under", orNull(memories > 0, memoryUnder)}};
  }
};

void printRows(const std::vector<Row>& rows) {
  fmt::print("{:<10} {:<20} {:>9} {:>9} {:>7}   {:>7} {:>7} {:>7}\n", "set", "run", "measured", "predicted", "error", "memory",
             "ours", "error");
  for (const Row& row : rows) {
    fmt::print("{:<10} {:<20} ", row.run.set(), row.run.id);
    const double seconds = row.prediction.time.value;
    if (row.run.time)
      fmt::print("{:>7.3f} s {:>7.3f} s {:>+6.1f}%   ", row.run.time->value, seconds,
                 100 * errorOf(seconds, row.run.time->value));
    else fmt::print("{:>9} {:>7.3f} s {:>7}   ", "-", seconds, "");
    const double peak = gib(row.prediction.peak);
    if (row.run.peak)
      fmt::print("{:>7.2f} {:>7.2f} {:>+6.1f}%\n", gib(*row.run.peak), peak, 100 * errorOf(peak, gib(*row.run.peak)));
    else fmt::print("{:>7} {:>7.2f}\n", "-", peak);
  }
}

Json toJson(const LayerErrors& e) {
  return {{"cells", e.cells},
          {"forward_mean_error", rounded(e.forward)},
          {"backward_mean_error", rounded(e.backward)},
          {"forward_max_error", rounded(e.forwardMost)},
          {"backward_max_error", rounded(e.backwardMost)}};
}

void printLayers(const V100Errors& errors) {
  fmt::print("\nanalytic profile, whole layers on V100    cells  forward (max)     backward (max)\n");
  const auto line = [](const std::string& name, const LayerErrors& e) {
    fmt::print("{:<40} {:>6} {:>7.1f}% {:>6.1f}% {:>8.1f}% {:>6.1f}%\n", name, e.cells, 100 * e.forward, 100 * e.forwardMost,
               100 * e.backward, 100 * e.backwardMost);
  };
  line("fitted: the four sizes of the fit", errors.fitted);
  line("fitted: the two others", errors.heldOut);
  for (const auto& [size, e] : errors.bySize) line("  " + size, e);
  line("generic constants: all sizes", errors.generic);
  for (const auto& [tp, e] : errors.genericByTp) line(fmt::format("  tp {}", tp), e);
}

int report(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.text());
  return 2;
}

int run(const Options& options) {
  const auto data = referenceData("sailor");
  if (!data) {
    fmt::print(stderr, "error: no reference data; EVENKEEL_REFERENCE_DATA names no folder that holds sailor/\n");
    return 2;
  }
  const std::filesystem::path file = options.runs.empty() ? *data / "measured_runs.csv" : std::filesystem::path(options.runs);
  const auto runs = loadRuns(file);
  if (!runs) return report(runs.error());
  std::vector<Row> rows;
  std::map<std::string, SetErrors> sets, analyticSets;
  for (const MeasuredRun& measured : *runs) {
    const auto prediction = predict(measured, data->parent_path());
    if (!prediction) {
      if (measured.time || measured.peak) return report(prediction.error());
      fmt::print(stderr, "left out: {}\n", prediction.error().text());  // marked as unusable, or nothing to compare with
      continue;
    }
    rows.push_back({measured, *prediction});
    sets[measured.set()].add(rows.back());
    if (const auto analytic = predict(measured, data->parent_path(), Times::Analytic); analytic)
      analyticSets[measured.set()].add({measured, *analytic});
  }
  if (options.predict) {
    Json all = Json::array();
    for (const Row& row : rows)
      all.push_back(
          {{"run_id", row.run.id}, {"seconds", rounded(row.prediction.time.value)}, {"peak_bytes", row.prediction.peak.value}});
    fmt::print("{}", prettyText({{"predictions", all}}));
    return 0;
  }
  Json json = Json::object();
  for (const auto& [name, errors] : sets) json[name] = errors.json();
  const auto layers = v100Errors(data->parent_path());
  if (!layers) return report(layers.error());
  const auto collectives = collectiveErrors(data->parent_path());
  if (!collectives) return report(collectives.error());
  if (options.asJson) {
    Json analytic = {
        {"fitted", toJson(layers->fitted)}, {"held_out", toJson(layers->heldOut)}, {"generic", toJson(layers->generic)}};
    Json nccl = Json::array();
    for (const CollectiveError& e : *collectives)
      nccl.push_back({{"collective", e.collective},
                      {"type", e.type},
                      {"gpus", e.gpus},
                      {"rows", e.rows},
                      {"slower_branch", e.slower},
                      {"mean_error", rounded(e.error)}});
    fmt::print("{}", prettyText({{"sets", json}, {"analytic_v100", analytic}, {"collectives_v100", nccl}}));
    return 0;
  }
  printRows(rows);
  fmt::print("\n{:<10} {:>5} {:>10} {:>10} {:>12} {:>12}\n", "set", "rows", "time mean", "time max", "memory mean",
             "worst under");
  for (const auto& [name, e] : sets) {
    fmt::print("{:<10} {:>5} {:>9.1f}% {:>9.1f}% ", name, e.rows, 100 * e.timeSum / std::max(1, e.times), 100 * e.timeMost);
    if (e.memories > 0) fmt::print("{:>11.1f}% {:>11.1f}%\n", 100 * e.memorySum / e.memories, 100 * e.memoryUnder);
    else fmt::print("{:>12} {:>12}\n", "-", "-");
  }
  fmt::print("\nthe same runs with the analytic profile\n");
  for (const auto& [name, e] : analyticSets)
    fmt::print("{:<10} {:>5} {:>9.1f}% {:>9.1f}%\n", name, e.rows, 100 * e.timeSum / std::max(1, e.times), 100 * e.timeMost);
  printLayers(*layers);
  fmt::print("\nNCCL in a node of V100s   GPUs   rows  slower branch  mean error\n");
  for (const CollectiveError& e : *collectives)
    fmt::print("{:<20} {:<5} {:>3} {:>6} {:>14} {:>10.1f}%\n", e.collective, e.type, e.gpus, e.rows, e.slower, 100 * e.error);
  const auto iterations = endToEnd(data->parent_path());
  if (!iterations) return report(iterations.error());
  fmt::print("\nGPT on V100s, best iteration of Aceso (plan not named) and of our best plan\n{:<6} {:>5} {:>6} {:>9} {:>9}\n",
             "size", "GPUs", "batch", "Aceso", "ours");
  for (const EndToEnd& e : *iterations)
    fmt::print("{:<6} {:>5} {:>6} {:>7.1f} s {:>9}\n", e.size, e.gpus, e.globalBatch, e.measured.value,
               e.ours ? fmt::format("{:.1f} s", e.ours->value) : "no plan");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--json") options.asJson = true;
    else if (argument == "--predict") options.predict = true;
    else if (argument == "--runs" && i + 1 < argc) options.runs = argv[++i];
    else {
      fmt::print(stderr, "error: {}: expected bench_accuracy [--runs FILE] [--json] [--predict]\n", argument);
      return 2;
    }
  }
  return run(options);
}
