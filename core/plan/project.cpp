// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/project.h"

#include <fmt/format.h>

#include <algorithm>

namespace evenkeel {
namespace {

constexpr double kCanvas = 1e6;  // farthest coordinate

TrainingChoice readChoice(JsonReader& reader) {
  TrainingChoice choice;
  if (reader.has("sequence_length")) choice.sequenceLength = reader.integer("sequence_length", {1, kMaxSequence});
  if (reader.has("global_batch")) choice.globalBatch = reader.integer("global_batch", {1, kMaxGlobalBatch});
  if (reader.has("precision")) choice.precision = reader.oneOf<Precision>("precision", precisionWords());
  if (reader.has("zero_stage")) choice.zeroStage = static_cast<int>(reader.integer("zero_stage", {0, 2}));
  if (reader.has("gradient_sync")) choice.gradientSync = reader.oneOf<GradientSync>("gradient_sync", gradientSyncWords());
  if (reader.has("attention")) choice.attention = reader.oneOf<AttentionKernel>("attention", attentionWords());
  return choice;
}

Json toJson(const TrainingChoice& choice) {
  Json json = Json::object();
  if (choice.sequenceLength) json["sequence_length"] = *choice.sequenceLength;
  if (choice.globalBatch) json["global_batch"] = *choice.globalBatch;
  if (choice.precision) json["precision"] = name(*choice.precision);
  if (choice.zeroStage) json["zero_stage"] = *choice.zeroStage;
  if (choice.gradientSync) json["gradient_sync"] = name(*choice.gradientSync);
  if (choice.attention) json["attention"] = name(*choice.attention);
  return json;
}

void readLayout(JsonReader& reader, Project& project) {
  for (JsonReader& entry : reader.optionalObjects("layout")) {
    const std::string item = entry.text("name");
    project.layout[item] = {entry.number("x", {-kCanvas, kCanvas}), entry.number("y", {-kCanvas, kCanvas})};
  }
}

void readPlans(JsonReader& reader, Project& project) {
  for (JsonReader& entry : reader.optionalObjects("plans")) {
    NamedPlan named{entry.text("name"), {}};
    auto plan = parsePlan(entry.raw("plan"), entry.placeOf("plan"));
    if (!plan) {
      if (!reader.context().error) reader.context().error = std::move(plan).error();
      return;
    }
    named.plan = *std::move(plan);
    if (std::ranges::any_of(project.plans, [&](const NamedPlan& other) { return other.name == named.name; })) {
      entry.fail("name", fmt::format("\"{}\" is the name of another plan", named.name));
    }
    project.plans.push_back(std::move(named));
  }
}

}  // namespace

std::optional<Problem> Project::problem() const {
  if (cluster.nodes.empty() || !model) return std::nullopt;
  return Problem{cluster, *model, resolveTraining(training, cluster, *model)};
}

Result<Project> parseProject(const Json& json, const std::string& source) {
  JsonContext context{source, {}};
  JsonReader reader(json, context);
  Project project;
  expectFormat(reader, kProjectFormat);
  if (reader.has("cluster")) {
    JsonReader cluster = reader.object("cluster");
    project.cluster = readCluster(cluster, Drawn::MayBeEmpty);
  }
  if (!reader.raw("model").is_null()) {  // null while none is chosen
    JsonReader model = reader.object("model");
    project.model = readModel(model);
  }
  if (reader.has("training")) {
    JsonReader training = reader.object("training");
    project.training = readChoice(training);
  }
  readLayout(reader, project);
  readPlans(reader, project);
  project.runs = reader.texts("runs");
  project.extra = reader.rest();
  if (context.error) return *std::move(context.error);
  return project;
}

Result<Project> loadProject(const std::filesystem::path& file) {
  auto json = readJsonFile(file);
  if (!json) return std::move(json).error();
  return parseProject(*json, file.string());
}

Json toJson(const Project& project) {
  Json json;
  json["format"] = kProjectFormat;
  json["cluster"] = toJson(project.cluster);
  json["model"] = project.model ? toJson(*project.model) : Json(nullptr);
  json["training"] = toJson(project.training);
  json["layout"] = Json::array();
  for (const auto& [item, point] : project.layout) json["layout"].push_back({{"name", item}, {"x", rounded(point.x)}, {"y", rounded(point.y)}});
  json["plans"] = Json::array();
  for (const NamedPlan& named : project.plans) json["plans"].push_back({{"name", named.name}, {"plan", toJson(named.plan)}});
  json["runs"] = project.runs;
  addUnknownFields(json, project.extra);
  return json;
}

}  // namespace evenkeel
