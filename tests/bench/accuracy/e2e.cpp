// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/bench/accuracy/e2e.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/csv.h"
#include "core/base/json.h"
#include "core/base/words.h"
#include "core/profile/analytic_profile.h"
#include "core/search/search.h"

namespace evenkeel::accuracy {
namespace {

/// Aceso's "1_3B" is our "gpt3-1.3b"; the vocabulary is theirs.
Result<Model> modelOf(std::string size) {
  std::ranges::replace(size, '_', '.');
  if (size == "2.6B") size = "2.7B";  // the same shape
  auto model = modelFromArgument("gpt3-" + lowerCase(size));
  if (model) model->vocab = 51200;
  return model;
}

std::optional<Seconds> bestPlan(const Model& model, int gpus, std::int64_t globalBatch) {
  constexpr int kOfNode = 8;
  constexpr double kBetweenNodesGbs = 5.4;  // as Aceso measured long messages between its nodes
  Problem problem{*parseClusterShorthand(gpus <= kOfNode ? fmt::format("1x{}:V100-32-SXM2", gpus)
                                                         : fmt::format("{}x{}:V100-32-SXM2", gpus / kOfNode, kOfNode)),
                  model,
                  {}};
  for (Node& node : problem.cluster.nodes) {
    node.nicPerDevice = false;
    node.nic.bandwidth = fromGbs(kBetweenNodesGbs);
  }
  problem.training =
      resolveTraining({.sequenceLength = 2048, .globalBatch = globalBatch, .precision = Precision::Fp16}, problem.cluster, model);
  const AnalyticProfile profile(model, problem.training, {.dropout = true, .deviceClass = nullptr});
  const auto planner = plannerNamed("eth");
  if (!planner) return std::nullopt;
  SearchObserver silent;
  Budget budget;
  const auto plan = (*planner)->plan({problem, &profile, budget, {}}, silent, {});
  if (!plan) return std::nullopt;
  return plan->predicted->iteration;
}

}  // namespace

Result<std::vector<EndToEnd>> endToEnd(const std::filesystem::path& data) {
  const std::filesystem::path file = data / "aceso" / "e2e_v100.csv";
  const auto text = readFile(file);
  if (!text) return text.error();
  const auto rows = parseCsv(*text, file.string());
  if (!rows) return rows.error();
  std::vector<EndToEnd> all;
  for (const CsvRow& row : *rows) {
    const auto field = [&](std::string_view column) {
      const auto found = row.fields.find(column);
      return found == row.fields.end() ? std::string() : found->second;
    };
    if (field("family") != "gpt" || field("metric") != "iter_s") continue;
    EndToEnd entry;
    entry.size = field("size");
    entry.gpus = parseNumber<int>(field("gpus")).value_or(0);
    entry.globalBatch = parseNumber<std::int64_t>(field("global_batch")).value_or(0);
    entry.measured = {parseNumber<double>(field("actual")).value_or(0)};
    if (entry.gpus < 1 || entry.globalBatch < 1)
      return invalidInput(fmt::format("{}:{}", file.string(), row.line), "names no number of GPUs or no batch");
    if (const auto model = modelOf(entry.size)) entry.ours = bestPlan(*model, entry.gpus, entry.globalBatch);
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace evenkeel::accuracy
