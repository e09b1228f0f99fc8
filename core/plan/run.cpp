// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/words.h"

namespace evenkeel {
namespace {

constexpr Bounds<std::int64_t> kSteps{1, 1'000'000'000};

using Schedule = Run::LearningRate::Schedule;
constexpr std::array<std::pair<std::string_view, Schedule>, 3> kSchedules = {
    {{"cosine", Schedule::Cosine}, {"linear", Schedule::Linear}, {"constant", Schedule::Constant}}};

constexpr std::array<std::pair<std::string_view, Run::OnFailure>, 3> kOnFailure = {
    {{"stop", Run::OnFailure::Stop}, {"resume", Run::OnFailure::Resume}, {"replan", Run::OnFailure::Replan}}};

/// What a shell can hold: letters, digits and _, no digit first.
bool isVariable(std::string_view name) {
  const auto isLetter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && isLetter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return isLetter(c) || (c >= '0' && c <= '9'); });
}

void addVariable(JsonReader& reader, Run::Environment& environment, const std::string& name, const Json& value) {
  if (!value.is_string())
    return reader.fail("environment", fmt::format("holds {}, which is no text", name),
                       R"(expected {"NAME": "value", "NODE": {"NAME": "value"}})");
  if (!isVariable(name))
    return reader.fail("environment", fmt::format("holds \"{}\", which is no name of a variable", name),
                       "expected letters, digits and _");
  environment[name] = value.get<std::string>();
}

void readEnvironment(JsonReader& reader, Run& run) {
  const Json& environment = reader.raw("environment");
  if (environment.is_null()) return;
  if (!environment.is_object())
    return reader.fail("environment", "is no object", R"(expected {"NAME": "value", "NODE": {"NAME": "value"}})");
  for (const auto& [name, value] : environment.items()) {
    if (!value.is_object()) {
      addVariable(reader, run.environment, name, value);
      continue;
    }
    for (const auto& [variable, text] : value.items()) addVariable(reader, run.nodeEnvironment[name], variable, text);
  }
}

void refuse(JsonReader& reader, std::string_view key) {
  if (reader.has(key)) reader.fail(key, "cannot be used yet", "leave it out");
}

}  // namespace

double Run::LearningRate::at(std::int64_t step, std::int64_t steps) const {
  if (step < warmupSteps) return peak * static_cast<double>(step + 1) / static_cast<double>(warmupSteps);
  const std::int64_t decaySteps = std::max<std::int64_t>(1, steps - 1 - warmupSteps);
  const double progress = std::min(1.0, static_cast<double>(step - warmupSteps) / static_cast<double>(decaySteps));
  switch (schedule) {
    case Schedule::Cosine: return peak * (final + (1.0 - final) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress)));
    case Schedule::Linear: return peak * (final + (1.0 - final) * (1.0 - progress));
    case Schedule::Constant: break;
  }
  return peak;
}

std::string_view name(Run::OnFailure wish) { return wordOf(kOnFailure, wish); }

std::optional<Run::OnFailure> onFailureNamed(std::string_view word) {
  const auto found = std::ranges::find(kOnFailure, word, &std::pair<std::string_view, Run::OnFailure>::first);
  return found == kOnFailure.end() ? std::nullopt : std::optional(found->second);
}

Run readRun(JsonReader& reader) {
  Run run;
  expectFormat(reader, kRunFormat);
  run.steps = reader.integer("steps", kSteps);
  if (reader.has("learning_rate")) {
    JsonReader rate = reader.object("learning_rate");
    run.learningRate.peak = rate.number("peak", {0.0, 1e3}, run.learningRate.peak);
    run.learningRate.warmupSteps = rate.integer("warmup_steps", {0, kSteps.most}, run.learningRate.warmupSteps);
    run.learningRate.final = rate.number("final", {0.0, 1.0}, run.learningRate.final);
    run.learningRate.schedule = rate.oneOf<Schedule>("schedule", kSchedules, run.learningRate.schedule);
  }
  run.weightDecay = reader.number("weight_decay", {0.0, 1.0}, run.weightDecay);
  if (reader.has("betas")) {
    const Json& betas = reader.raw("betas");
    if (betas.is_array() && betas.size() == 2 && betas[0].is_number() && betas[1].is_number()) {
      run.beta1 = betas[0].get<double>();
      run.beta2 = betas[1].get<double>();
    }
    const bool usable = betas.size() == 2 && run.beta1 >= 0 && run.beta1 < 1 && run.beta2 >= 0 && run.beta2 < 1;
    if (!usable || !betas.is_array()) reader.fail("betas", "is not usable", "expected two numbers from 0 to below 1, as [0.9, 0.95]");
  }
  run.epsilon = reader.number("epsilon", {1e-300, 1.0}, run.epsilon);
  run.seed = static_cast<std::uint64_t>(reader.integer("seed", {0, std::numeric_limits<std::int64_t>::max()}, 1));
  if (reader.has("data")) {
    JsonReader data = reader.object("data");
    run.train = data.texts("train");
    if (data.has("validation")) run.validation = data.texts("validation");
    refuse(data, "per_node_paths");
    if (data.text("tokenizer", "bytes") != "bytes") data.fail("tokenizer", "cannot be used yet", "expected bytes");
  }
  run.gradientClip = reader.number("gradient_clip", {0.0, 1e9}, 0.0);
  run.dropout = reader.number("dropout", {0.0, 0.99}, 0.0);
  run.evaluation.every = reader.integer("evaluate_every", {0, kSteps.most}, 0);
  run.evaluation.batches = reader.integer("evaluate_batches", {1, 1'000'000}, run.evaluation.batches);
  if (run.evaluation.every > 0 && run.validation.empty()) reader.fail("evaluate_every", "has no data to evaluate on", "name some in data.validation");
  if (reader.has("trace_steps")) run.traceSteps = reader.integers("trace_steps", kSteps);
  if (reader.has("rehearsal")) run.rehearsal = Run::Rehearsal{reader.object("rehearsal").number("time_scale", {1e-6, 1e6}, 1.0)};
  if (reader.has("checkpoint")) {
    JsonReader checkpoint = reader.object("checkpoint");
    run.checkpoint.every = checkpoint.integer("every", {0, kSteps.most}, 0);
    run.checkpoint.keep = static_cast<int>(checkpoint.integer("keep", {1, 1'000'000}, run.checkpoint.keep));
    run.checkpoint.directory = checkpoint.text("directory", "");
    if (!run.checkpoint.directory.empty() && !run.checkpoint.directory.starts_with('/')) checkpoint.fail("directory", "is no absolute path");
    (void)checkpoint.rest();
  }
  if (reader.has("environment")) readEnvironment(reader, run);
  run.endCommand = reader.text("end_command", "");
  refuse(reader, "tokens");
  run.onFailure = reader.oneOf<Run::OnFailure>("on_failure", kOnFailure, run.onFailure);
  run.extra = reader.rest();
  return run;
}

Json toJson(const Run& run) {
  Json json;
  json["format"] = kRunFormat;
  json["steps"] = run.steps;
  json["learning_rate"]["peak"] = run.learningRate.peak;
  json["learning_rate"]["warmup_steps"] = run.learningRate.warmupSteps;
  json["learning_rate"]["schedule"] = wordOf(kSchedules, run.learningRate.schedule);
  json["learning_rate"]["final"] = run.learningRate.final;
  json["weight_decay"] = run.weightDecay;
  json["betas"] = {run.beta1, run.beta2};
  json["epsilon"] = run.epsilon;
  json["gradient_clip"] = run.gradientClip;
  json["dropout"] = run.dropout;
  json["seed"] = run.seed;
  if (run.checkpoint.every > 0) {
    json["checkpoint"]["every"] = run.checkpoint.every;
    json["checkpoint"]["keep"] = run.checkpoint.keep;
    if (!run.checkpoint.directory.empty()) json["checkpoint"]["directory"] = run.checkpoint.directory;
  }
  if (run.evaluation.every > 0) {
    json["evaluate_every"] = run.evaluation.every;
    json["evaluate_batches"] = run.evaluation.batches;
  }
  if (!run.traceSteps.empty()) json["trace_steps"] = run.traceSteps;
  if (run.rehearsal) json["rehearsal"]["time_scale"] = run.rehearsal->timeScale;
  json["data"]["train"] = run.train;
  if (!run.validation.empty()) json["data"]["validation"] = run.validation;
  json["data"]["tokenizer"] = "bytes";
  json["on_failure"] = name(run.onFailure);
  if (!run.endCommand.empty()) json["end_command"] = run.endCommand;
  for (const auto& [variable, value] : run.environment) json["environment"][variable] = value;
  for (const auto& [node, environment] : run.nodeEnvironment) {
    for (const auto& [variable, value] : environment) json["environment"][node][variable] = value;
  }
  addUnknownFields(json, run.extra);
  return json;
}

}  // namespace evenkeel
