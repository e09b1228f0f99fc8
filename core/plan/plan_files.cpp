// SPDX-License-Identifier: GPL-3.0-or-later
// The JSON form of a plan.
#include <fmt/format.h>

#include <limits>

#include "core/plan/plan.h"

namespace evenkeel {
namespace {

constexpr Bounds<std::int64_t> kUnit{0, 1 << 20};
constexpr Bounds<std::int64_t> kDegree{1, kMaxDevices};
constexpr Bounds<std::int64_t> kSize{0, std::numeric_limits<std::int64_t>::max()};
constexpr Bounds<double> kTime{0.0, 1e15};

UnitRange readUnits(JsonReader& reader) {
  const auto ends = reader.integers("units", kUnit);
  if (ends.size() != 2) {
    reader.fail("units", fmt::format("has {} numbers", ends.size()), "expected [first, last), for example [0, 9]");
    return {};
  }
  return {static_cast<int>(ends[0]), static_cast<int>(ends[1])};
}

MemoryUse readMemory(JsonReader reader) {
  const auto part = [&](std::string_view key) { return Bytes{reader.integer(key, kSize, 0)}; };
  return {.weights = part("weights"),
          .gradients = part("gradients"),
          .optimizer = part("optimizer"),
          .activations = part("activations"),
          .transient = part("transient"),
          .reserved = part("reserved"),
          .capacity = part("capacity")};
}

StagePrediction readStagePrediction(JsonReader reader) {
  StagePrediction predicted;
  predicted.forward = fromMilliseconds(reader.number("forward_ms", kTime));
  predicted.backward = fromMilliseconds(reader.number("backward_ms", kTime));
  predicted.send = fromMilliseconds(reader.number("send_ms", kTime, 0.0));
  predicted.inFlight = static_cast<int>(reader.integer("in_flight", {0, 1 << 30}, 0));
  predicted.memory = readMemory(reader.object("memory"));
  return predicted;
}

void readRecompute(JsonReader& reader, const Model& model, Stage& stage) {
  Recompute recompute;
  recompute.units = readUnits(reader);
  const auto words = reader.texts("ops");
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto op = opNamed(model, words[i]);
    if (op) recompute.ops.push_back(*op);
    else reader.fail(fmt::format("ops/{}", i), fmt::format("\"{}\" is no op", words[i].substr(0, 60)));
  }
  stage.recompute.push_back(std::move(recompute));
}

Stage readStage(JsonReader& reader, const Cluster& cluster, const Model& model) {
  Stage stage;
  const auto devices = reader.texts("devices");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto device = cluster.find(devices[i]);
    if (device) stage.devices.push_back(*device);
    else
      reader.fail(fmt::format("devices/{}", i), fmt::format("\"{}\": {}", devices[i].substr(0, 80), device.error().what),
                  device.error().remedy);
  }
  if (devices.empty()) reader.fail("devices", "names no device", "expected [\"node/index\", ...]");
  stage.tp = static_cast<int>(reader.integer("tp", kDegree, 1));
  stage.dp = static_cast<int>(reader.integer("dp", kDegree, 1));
  if (reader.has("shares")) {
    for (const auto share : reader.integers("shares", {0, kMaxGlobalBatch})) stage.shares.push_back(static_cast<int>(share));
  }
  stage.units = readUnits(reader);
  (void)reader.raw("layers");  // derived from units; read to be known, written again from units
  for (JsonReader& entry : reader.optionalObjects("recompute")) readRecompute(entry, model, stage);
  if (reader.has("predicted")) stage.predicted = readStagePrediction(reader.object("predicted"));
  stage.extra = reader.rest();
  return stage;
}

Pipeline readPipeline(JsonReader& reader, const Cluster& cluster, const Model& model) {
  Pipeline pipeline;
  pipeline.localBatch = reader.integer("local_batch", {1, kMaxGlobalBatch});
  pipeline.microBatch = static_cast<int>(reader.integer("micro_batch", {1, kMaxGlobalBatch}));
  for (JsonReader& entry : reader.objects("stages")) pipeline.stages.push_back(readStage(entry, cluster, model));
  if (pipeline.stages.empty()) reader.fail("stages", "is empty", "expected at least one stage");
  if (reader.has("predicted")) {
    JsonReader predicted = reader.object("predicted");
    pipeline.predictedTime = fromMilliseconds(predicted.number("time_ms", kTime));
    pipeline.bubbleFraction = predicted.number("bubble_fraction", {0.0, 1.0}, 0.0);
  }
  pipeline.extra = reader.rest();
  return pipeline;
}

PlanPrediction readPrediction(JsonReader reader) {
  const auto time = [&](std::string_view key) { return fromMilliseconds(reader.number(key, kTime, 0.0)); };
  PlanPrediction predicted;
  predicted.iteration = time("iteration_ms");
  predicted.pipeline = time("pipeline_ms");
  predicted.sync = time("sync_ms");
  predicted.optimizer = time("optimizer_ms");
  predicted.samplesPerSecond = reader.number("samples_per_s", kTime, 0.0);
  predicted.tokensPerSecond = reader.number("tokens_per_s", kTime, 0.0);
  predicted.mfu = reader.number("mfu", {0.0, 1e6}, 0.0);
  predicted.lowerBound = time("lower_bound_ms");
  predicted.error = reader.number("error", {0.0, 1e3}, 0.0);
  return predicted;
}

Json memoryJson(const MemoryUse& memory) {
  Json json;
  json["weights"] = memory.weights.value;
  json["gradients"] = memory.gradients.value;
  json["optimizer"] = memory.optimizer.value;
  json["activations"] = memory.activations.value;
  json["transient"] = memory.transient.value;
  json["reserved"] = memory.reserved.value;
  json["total"] = memory.total().value;
  json["capacity"] = memory.capacity.value;
  return json;
}

double ms(Seconds time) { return rounded(milliseconds(time)); }

Json stageJson(const Plan& plan, const Pipeline& pipeline, const Stage& stage) {
  Json json;
  json["devices"] = Json::array();
  for (const DeviceId device : stage.devices) json["devices"].push_back(plan.cluster.nameOf(device));
  json["tp"] = stage.tp;
  json["dp"] = stage.dp;
  json["shares"] = stage.sharesOf(pipeline.microBatch);
  json["units"] = {stage.units.first, stage.units.last};
  json["layers"] = layersIn(plan.model, stage.units);
  json["recompute"] = Json::array();
  for (const Recompute& recompute : stage.recompute) {
    Json entry;
    entry["units"] = {recompute.units.first, recompute.units.last};
    entry["ops"] = Json::array();
    for (const Op op : recompute.ops) entry["ops"].push_back(name(plan.model, op));
    json["recompute"].push_back(std::move(entry));
  }
  if (stage.predicted) {
    Json& predicted = json["predicted"];
    predicted["forward_ms"] = ms(stage.predicted->forward);
    predicted["backward_ms"] = ms(stage.predicted->backward);
    predicted["send_ms"] = ms(stage.predicted->send);
    predicted["in_flight"] = stage.predicted->inFlight;
    predicted["memory"] = memoryJson(stage.predicted->memory);
  }
  addUnknownFields(json, stage.extra);
  return json;
}

Json pipelineJson(const Plan& plan, const Pipeline& pipeline) {
  Json json;
  json["local_batch"] = pipeline.localBatch;
  json["micro_batch"] = pipeline.microBatch;
  json["stages"] = Json::array();
  for (const Stage& stage : pipeline.stages) json["stages"].push_back(stageJson(plan, pipeline, stage));
  if (pipeline.predictedTime) {
    json["predicted"]["time_ms"] = ms(*pipeline.predictedTime);
    json["predicted"]["bubble_fraction"] = rounded(pipeline.bubbleFraction);
  }
  addUnknownFields(json, pipeline.extra);
  return json;
}

Json predictionJson(const PlanPrediction& predicted) {
  Json json;
  json["iteration_ms"] = ms(predicted.iteration);
  json["pipeline_ms"] = ms(predicted.pipeline);
  json["sync_ms"] = ms(predicted.sync);
  json["optimizer_ms"] = ms(predicted.optimizer);
  json["samples_per_s"] = rounded(predicted.samplesPerSecond);
  json["tokens_per_s"] = rounded(predicted.tokensPerSecond);
  json["mfu"] = rounded(predicted.mfu);
  json["lower_bound_ms"] = ms(predicted.lowerBound);
  // Of the numbers as written, so that a plan that is read and written again has the same.
  PlanPrediction written;
  written.lowerBound = fromMilliseconds(json["lower_bound_ms"].get<double>());
  written.iteration = fromMilliseconds(json["iteration_ms"].get<double>());
  json["gap"] = rounded(written.gap());
  if (predicted.error > 0) json["error"] = rounded(predicted.error);
  return json;
}

}  // namespace

Result<Plan> parsePlan(const Json& json, const std::string& source) {
  JsonContext context{source, {}};
  JsonReader reader(json, context);
  Plan plan;
  expectFormat(reader, kPlanFormat);
  JsonReader cluster = reader.object("cluster");
  plan.cluster = readCluster(cluster);
  if (context.error) return *std::move(context.error);  // devices below are looked up in the cluster
  JsonReader model = reader.object("model");
  plan.model = readModel(model);
  JsonReader training = reader.object("training");
  plan.training = readTraining(training);
  for (JsonReader& entry : reader.objects("pipelines")) plan.pipelines.push_back(readPipeline(entry, plan.cluster, plan.model));
  if (plan.pipelines.empty()) reader.fail("pipelines", "is empty", "expected at least one pipeline");
  (void)reader.raw("idle_devices");  // derived from the pipelines
  if (reader.has("predicted")) plan.predicted = readPrediction(reader.object("predicted"));
  plan.search = reader.raw("search");
  plan.inputsSha256 = reader.text("inputs_sha256", "");
  plan.extra = reader.rest();
  if (context.error) return *std::move(context.error);
  return plan;
}

Result<Plan> loadPlan(const std::filesystem::path& file) {
  auto json = readJsonFile(file);
  if (!json) return std::move(json).error();
  return parsePlan(*json, file.string());
}

Json toJson(const Plan& plan) {
  Json json;
  json["format"] = kPlanFormat;
  json["cluster"] = toJson(plan.cluster);
  json["model"] = toJson(plan.model);
  json["training"] = toJson(plan.training);
  json["pipelines"] = Json::array();
  for (const Pipeline& pipeline : plan.pipelines) json["pipelines"].push_back(pipelineJson(plan, pipeline));
  json["idle_devices"] = Json::array();
  for (const DeviceId device : plan.idleDevices()) json["idle_devices"].push_back(plan.cluster.nameOf(device));
  if (plan.predicted) json["predicted"] = predictionJson(*plan.predicted);
  if (!plan.search.is_null()) json["search"] = plan.search;
  if (!plan.inputsSha256.empty()) json["inputs_sha256"] = plan.inputsSha256;
  addUnknownFields(json, plan.extra);
  return json;
}

}  // namespace evenkeel
