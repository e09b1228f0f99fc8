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

constexpr std::array<std::pair<std::string_view, Norm>, 2> kNorms = {{{"layernorm", Norm::LayerNorm}, {"rmsnorm", Norm::RmsNorm}}};
constexpr std::array<std::pair<std::string_view, Position>, 2> kPositions = {{{"learned", Position::Learned}, {"rotary", Position::Rotary}}};

void checkHeads(JsonReader& reader, const Model& model, std::string_view kvHeadsKey) {
  if (!reader.context().error && model.heads % model.kvHeads != 0) {
    reader.fail(kvHeadsKey, fmt::format("is {}, which does not divide {} heads", model.kvHeads, model.heads));
  }
}

/// Every field may be in its range and the whole still be no model: a slip of some zeros. Counts below stay far from overflow.
void checkSize(JsonReader& reader, const Model& model) {
  constexpr double kMost = 1e14;
  const auto number = [](std::int64_t size) { return static_cast<double>(size); };
  const double heads = static_cast<double>(2 * std::int64_t{model.heads} + 2 * std::int64_t{model.kvHeads}) * number(model.headDim);
  const double layer = number(model.hidden) * (heads + number(model.ffn) * (model.gated ? 3 : 2));
  const double parameters = model.layers * layer + 2 * number(model.hidden) * number(model.paddedVocab());
  if (!reader.context().error && parameters > kMost) {
    reader.fail("", fmt::format("makes a model of {:.1e} parameters", parameters), fmt::format("the limit is {:.0e}", kMost));
  }
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

}  // namespace

Model readModel(JsonReader& reader) {
  Model model;
  expectFormat(reader, kModelFormat);
  model.name = reader.text("name");
  model.layers = static_cast<int>(reader.integer("layers", {1, kMaxLayers}));
  model.hidden = reader.integer("hidden", {1, kMaxSize});
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
  addUnknownFields(json, model.extra);
  return json;
}

Result<Model> loadModel(const std::filesystem::path& file) {
  auto json = readJsonFile(file);
  if (!json) return std::move(json).error();
  JsonContext context{file.string(), {}};
  JsonReader reader(*json, context);
  const bool isHuggingFace = (reader.has("model_type") || reader.has("text_config")) && !reader.has("format");
  Model model = isHuggingFace ? readHuggingFaceConfig(reader, file.stem().string()) : readModel(reader);
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
  return invalidInput(fmt::format("model \"{}\"", argument.substr(0, 80)), "is not in the catalogue and no such file exists", "known models: " + names);
}

}  // namespace evenkeel
