// SPDX-License-Identifier: GPL-3.0-or-later
// Models as text: our JSON format, and the presets.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "core/model/model.h"
#include "core/model/training.h"
#include "resources/embedded.h"

namespace evenkeel {
namespace {

constexpr std::int64_t kMaxSize = 1 << 24;  // hidden, ffn, vocabulary, context
constexpr std::int64_t kMaxLayers = 4096;

constexpr std::array<std::pair<std::string_view, Norm>, 2> kNorms = {
    {{"layernorm", Norm::LayerNorm}, {"rmsnorm", Norm::RmsNorm}}};
constexpr std::array<std::pair<std::string_view, Position>, 2> kPositions = {
    {{"learned", Position::Learned}, {"rotary", Position::Rotary}}};

constexpr std::array<std::pair<std::string_view, Activation>, 2> kActivations = {
    {{"gelu", Activation::Gelu}, {"gelu_tanh", Activation::GeluTanh}}};

void checkHeads(JsonReader& reader, const Model& model, std::string_view kvHeadsKey) {
  if (!reader.context().error && model.heads % model.kvHeads != 0) {
    reader.fail(kvHeadsKey, fmt::format("is {}, which does not divide {} heads", model.kvHeads, model.heads));
  }
}

void checkParameters(JsonReader& reader, double parameters) {
  constexpr double kMost = 1e14;
  if (!reader.context().error && parameters > kMost) {
    reader.fail("", fmt::format("makes a model of {:.1e} parameters", parameters), fmt::format("the limit is {:.0e}", kMost));
  }
}

/// Every field may be in its range and the whole still be no model: a slip of some zeros. Counts below stay far from overflow.
void checkSize(JsonReader& reader, const Model& model) {
  const auto number = [](std::int64_t size) { return static_cast<double>(size); };
  const double heads =
      static_cast<double>(2 * std::int64_t{model.heads} + 2 * std::int64_t{model.kvHeads}) * number(model.headDim);
  const double layer = number(model.hidden) * (heads + number(model.ffn) * (model.gated ? 3 : 2));
  checkParameters(reader, model.layers * layer + 2 * number(model.hidden) * number(model.paddedVocab()));
}

std::int64_t defaultHeadDim(JsonReader& reader, const Model& model, std::string_view hiddenKey) {
  if (model.heads > 0 && model.hidden % model.heads != 0) {
    reader.fail(hiddenKey, fmt::format("is {}, no multiple of {} heads", model.hidden, model.heads), "give head_dim");
  }
  return model.heads > 0 ? std::max<std::int64_t>(1, model.hidden / model.heads) : 1;
}

std::vector<Model> readPresets() {
  std::vector<Model> models;
  for (const auto& [file, text] : embedded::models()) {
    JsonContext context{std::string(file), {}};
    auto json = parseJson(text, context.source);
    if (json) {
      JsonReader reader(*json, context);
      models.push_back(readModel(reader));
    }
    if (!json || context.error) {  // ours and tested: a mistake in it is a bug
      std::fputs(((json ? *context.error : json.error()).text() + "\n").c_str(), stderr);
      std::abort();
    }
  }
  return models;
}

OpaqueLayer readOpaqueLayer(JsonReader reader) {
  constexpr double kMostBytes = 1e15, kMostGflop = 1e12, kMostMs = 1e9;
  OpaqueLayer layer;
  layer.name = reader.text("name", std::string());
  layer.parameters = reader.integer("parameters", {0, std::int64_t{100'000'000'000}}, 0);
  layer.saved = {static_cast<std::int64_t>(reader.number("saved_bytes", {0.0, kMostBytes}, 0.0))};
  layer.transient = {static_cast<std::int64_t>(reader.number("transient_bytes", {0.0, kMostBytes}, 0.0))};
  layer.forward = {reader.number("forward_gflop", {0.0, kMostGflop}, 0.0) * 1e9};
  const std::string place = reader.placeOf("times_ms");
  if (const Json& times = reader.raw("times_ms"); times.is_object()) {
    JsonReader each(times, reader.context(), place);
    for (const auto& [type, value] : times.items()) {
      const auto isTime = [&](std::size_t i) { return value[i].is_number() && value[i] >= 0 && value[i] <= kMostMs; };
      if (value.is_array() && value.size() == 2 && isTime(0) && isTime(1))
        layer.times[type] = {fromMilliseconds(value[0].get<double>()), fromMilliseconds(value[1].get<double>())};
      else each.fail(type, "is no time", "expected [forward, backward] of one sample, in ms");
    }
  } else if (!times.is_null()) {
    reader.fail("times_ms", "is no object", "expected {\"device type\": [forward, backward], ...}");
  }
  if (!reader.has("forward_gflop") && layer.times.empty())
    reader.fail("", "has neither times nor FLOPs", "give times_ms or forward_gflop, 0 if it costs nothing");
  (void)reader.rest();
  return layer;
}

void readOpaque(JsonReader& reader, Model& model) {
  model.heads = model.kvHeads = 1;
  model.headDim = model.ffn = model.vocab = model.vocabMultiple = 1;
  model.tiedEmbeddings = false;
  model.position = Position::Rotary;  // no learned positions that a sequence could outgrow
  model.context = reader.integer("context", {1, kMaxSequence});
  JsonReader table = reader.object("opaque");
  OpaqueLayers layers;
  layers.first = readOpaqueLayer(table.object("first"));
  layers.inner = readOpaqueLayer(table.object("layer"));
  layers.last = readOpaqueLayer(table.object("last"));
  (void)table.rest();
  const bool isFree =
      std::ranges::any_of(layers.inner.times, [](const auto& time) { return time.second == OpaqueLayer::Time{}; });
  if (isFree || (layers.inner.forward.value == 0 && layers.inner.times.empty()))
    table.fail("layer", "costs nothing", "its times_ms or forward_gflop must be above 0");
  const double parameters = static_cast<double>(layers.first.parameters) + static_cast<double>(layers.last.parameters) +
                            model.layers * static_cast<double>(layers.inner.parameters);
  checkParameters(reader, parameters);
  model.opaque = std::move(layers);
  model.extra = reader.rest();
}

Json toJson(const OpaqueLayer& layer) {
  Json json = Json::object();
  if (!layer.name.empty()) json["name"] = layer.name;
  json["parameters"] = layer.parameters;
  json["saved_bytes"] = layer.saved.value;
  json["transient_bytes"] = layer.transient.value;
  json["forward_gflop"] = rounded(layer.forward.value / 1e9);
  for (const auto& [type, time] : layer.times)
    json["times_ms"][type] = {rounded(milliseconds(time.forward)), rounded(milliseconds(time.backward))};
  return json;
}

}  // namespace

Model readModel(JsonReader& reader) {
  Model model;
  expectFormat(reader, kModelFormat);
  model.name = reader.text("name");
  model.layers = static_cast<int>(reader.integer("layers", {1, kMaxLayers}));
  model.hidden = reader.integer("hidden", {1, kMaxSize});
  if (reader.has("opaque")) {
    readOpaque(reader, model);
    return model;
  }
  model.heads = static_cast<int>(reader.integer("heads", {1, kMaxSize}));
  model.kvHeads = static_cast<int>(reader.integer("kv_heads", {1, kMaxSize}, model.heads));
  model.headDim = reader.has("head_dim") ? reader.integer("head_dim", {1, kMaxSize}) : defaultHeadDim(reader, model, "hidden");
  model.gated = reader.boolean("gated", false);
  model.ffn = reader.integer("ffn", {1, kMaxSize}, 4 * model.hidden);
  model.vocab = reader.integer("vocab", {1, kMaxSize});
  model.vocabMultiple = reader.integer("vocab_multiple", {1, kMaxSize}, 128);
  model.context = reader.integer("context", {1, kMaxSequence});
  model.tiedEmbeddings = reader.boolean("tied_embeddings", true);
  model.norm = reader.oneOf<Norm>("norm", kNorms, Norm::LayerNorm);
  model.position = reader.oneOf<Position>("position", kPositions, Position::Learned);
  model.activation = reader.oneOf<Activation>("activation", kActivations, Activation::Gelu);
  model.normEpsilon = reader.number("norm_epsilon", {1e-12, 1e-2}, model.normEpsilon);
  model.rotaryBase = reader.number("rotary_base", {1.0, 1e12}, model.rotaryBase);
  model.bias = reader.boolean("bias", model.norm == Norm::LayerNorm);
  if (reader.has("qkv_bias")) model.qkvBias = reader.boolean("qkv_bias", model.bias);
  checkHeads(reader, model, "kv_heads");
  checkSize(reader, model);
  model.extra = reader.rest();
  return model;
}

Json toJson(const Model& model) {
  Json json;
  json["format"] = kModelFormat;
  json["name"] = model.name;
  json["layers"] = model.layers;
  json["hidden"] = model.hidden;
  if (model.opaque) {
    json["context"] = model.context;
    json["opaque"] = {
        {"first", toJson(model.opaque->first)}, {"layer", toJson(model.opaque->inner)}, {"last", toJson(model.opaque->last)}};
    addUnknownFields(json, model.extra);
    return json;
  }
  json["heads"] = model.heads;
  json["kv_heads"] = model.kvHeads;
  json["head_dim"] = model.headDim;
  json["ffn"] = model.ffn;
  json["vocab"] = model.vocab;
  json["vocab_multiple"] = model.vocabMultiple;
  json["context"] = model.context;
  json["gated"] = model.gated;
  json["tied_embeddings"] = model.tiedEmbeddings;
  json["bias"] = model.bias;
  if (model.qkvBias) json["qkv_bias"] = *model.qkvBias;
  json["norm"] = kNorms[model.norm == Norm::LayerNorm ? 0 : 1].first;
  json["position"] = kPositions[model.position == Position::Learned ? 0 : 1].first;
  // only where they are not the usual ones, so that files and hashes of before stay what they are
  const Model usual;
  if (model.activation != usual.activation) json["activation"] = kActivations[1].first;
  if (model.normEpsilon != usual.normEpsilon) json["norm_epsilon"] = model.normEpsilon;
  if (model.rotaryBase != usual.rotaryBase) json["rotary_base"] = model.rotaryBase;
  addUnknownFields(json, model.extra);
  return json;
}

namespace {

/// Hugging Face calls every file config.json: the folder says which model it is.
std::string nameFor(const std::filesystem::path& file) {
  const std::string name = file.stem().string();
  if (name != "config") return name;
  std::error_code failure;
  const auto folder = std::filesystem::absolute(file, failure).lexically_normal().parent_path().filename().string();
  return folder.empty() ? name : folder;
}

}  // namespace

Result<Model> loadModel(const std::filesystem::path& file) {
  auto json = readJsonFile(file);
  if (!json) return std::move(json).error();
  JsonContext context{file.string(), {}};
  JsonReader reader(*json, context);
  const bool isHuggingFace = (reader.has("model_type") || reader.has("text_config")) && !reader.has("format");
  Model model = isHuggingFace ? readHuggingFaceConfig(reader, nameFor(file)) : readModel(reader);
  checkSize(reader, model);
  if (context.error) return *std::move(context.error);
  return model;
}

const std::vector<Model>& modelCatalogue() {
  static const std::vector<Model> models = readPresets();
  return models;
}

Result<Model> modelFromArgument(const std::string& argument) {
  for (const Model& model : modelCatalogue()) {
    if (model.name == argument) return model;
  }
  std::error_code failure;
  if (std::filesystem::exists(argument, failure) || argument.ends_with(".json") || argument.find('/') != std::string::npos) {
    return loadModel(argument);
  }
  std::string names;
  for (const Model& model : modelCatalogue()) names += (names.empty() ? "" : ", ") + model.name;
  return invalidInput(fmt::format("model \"{}\"", argument.substr(0, 80)), "is not in the catalogue and no such file exists",
                      "known models: " + names);
}

}  // namespace evenkeel
