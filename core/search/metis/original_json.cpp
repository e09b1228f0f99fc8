// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/metis/original_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "core/cluster/catalogue.h"
#include "core/plan/problem.h"
#include "core/plan/violations.h"

namespace evenkeel::metis {
namespace {

constexpr std::size_t kRanked = 20;
/// The case says nothing of heads; Metis never asks. 64 features each are the usual choice.
constexpr std::int64_t kHeadDim = 64;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The catalogue's name for a type of Metis's with so much memory.
std::string catalogueName(const std::string& type, double memoryMb) {
  const double gb = memoryMb / 1024;
  if (type == "A100") return gb > 60 ? "A100-80-SXM" : "A100-40-SXM";
  if (type == "V100") return gb > 24 ? "V100-32-SXM2" : "V100-16-SXM2";
  return type;
}

Result<Cluster> clusterOf(const OriginalCase& given) {
  std::string shorthand;
  for (const OriginalCase::Node& node : given.nodes) {
    shorthand += fmt::format("{}1x{}:{}", shorthand.empty() ? "" : ",", node.devices,
                             catalogueName(node.type, given.memoryMb.at(node.type)));
  }
  auto cluster = parseClusterShorthand(shorthand);
  if (!cluster) return cluster;
  for (std::size_t n = 0; n < given.nodes.size(); ++n) {
    cluster->nodes[n].intra.bandwidth = BytesPerSecond{1e9 * given.nodes[n].bandwidth};
  }
  return cluster;
}

Model modelOf(const OriginalCase& given) {
  Model model;
  model.name = "metis-case";
  model.layers = given.layers - 2;
  model.hidden = given.hidden;
  model.headDim = std::gcd(given.hidden, kHeadDim);
  model.heads = model.kvHeads = static_cast<int>(given.hidden / model.headDim);
  model.ffn = 4 * given.hidden;
  model.vocab = given.vocabulary;
  model.context = given.sequence;
  return model;
}

/// The plan in our terms; none where it cannot be said in them.
std::optional<Plan> asOurs(const OriginalCase& given, const OriginalPlan& original) {
  const auto cluster = clusterOf(given);
  if (!cluster || given.layers < 3 || original.stagesCosted != static_cast<int>(original.groups.size())) return std::nullopt;
  Plan plan;
  plan.cluster = *cluster;
  plan.model = modelOf(given);
  plan.training = resolveTraining({.globalBatch = given.globalBatch}, plan.cluster, plan.model);
  std::vector<DeviceId> ranks;
  for (const std::string& type : original.typeOrder) {
    for (const DeviceId device : plan.cluster.devices()) {
      if (given.nodes[static_cast<std::size_t>(device.node)].type == type) ranks.push_back(device);
    }
  }
  Pipeline& pipeline = plan.pipelines.emplace_back();
  pipeline.localBatch = given.globalBatch;
  pipeline.microBatch = static_cast<int>(given.globalBatch / original.microBatches);
  const auto unit = [&](int layer) { return layer == 0 ? 0 : layer == given.layers ? plan.model.unitCount() : 2 * layer - 1; };
  auto next = ranks.begin();
  for (std::size_t s = 0; s < original.groups.size(); ++s) {
    Stage stage;
    std::tie(stage.dp, stage.tp) = original.degrees[s];
    stage.devices.assign(next, next + original.groups[s]);
    next += original.groups[s];
    stage.units = {unit(original.layerEnds[s]), unit(original.layerEnds[s + 1])};
    pipeline.stages.push_back(std::move(stage));
  }
  return shapeViolations(plan).empty() ? std::optional(plan) : std::nullopt;
}

}  // namespace

std::string printed(const OriginalPlan& plan) {
  std::vector<std::string> types, degrees;
  for (const std::string& type : plan.typeOrder) types.push_back(fmt::format("<DeviceType.{}: '{}'>", type, lower(type)));
  for (const auto& [dp, tp] : plan.degrees) degrees.push_back(fmt::format("({}, {})", dp, tp));
  return fmt::format("({}{}), [{}], [{}], {}, [{}]", fmt::join(types, ", "), types.size() == 1 ? "," : "",
                     fmt::join(plan.groups, ", "), fmt::join(degrees, ", "), plan.microBatches, fmt::join(plan.layerEnds, ", "));
}

Json documentOf(const OriginalCase& given, std::span<const OriginalPlan> plans) {
  std::vector<const OriginalPlan*> ranked;
  for (const OriginalPlan& plan : plans) ranked.push_back(&plan);
  std::ranges::stable_sort(ranked, {}, &OriginalPlan::total);
  const OriginalPlan& best = *ranked.front();

  Json document = Json::object();
  if (const auto ours = asOurs(given, best)) document = toJson(*ours);
  else document["format"] = kPlanFormat;
  Json& search = document["search"] = Json::object();
  search["planner"] = "metis";
  search["options"] = {{"exact", "true"}};
  search["stopped"] = "space exhausted";
  search["evaluated"] = plans.size();
  Json& original = search["original"];
  original["cost_ms"] = best.total;
  original["plan"] = printed(best);
  original["node_sequence"] = best.typeOrder;
  original["device_groups"] = best.groups;
  original["strategies"] = best.degrees;
  original["batches"] = best.microBatches;
  original["layer_partition"] = best.layerEnds;
  original["num_stage_costed"] = best.stagesCosted;
  original["plans"] = plans.size();
  for (std::size_t i = 0; i < std::min(kRanked, ranked.size()); ++i)
    original["ranked"].push_back(fmt::format("{}, {}, {}", i + 1, ranked[i]->total, printed(*ranked[i])));
  return document;
}

}  // namespace evenkeel::metis
