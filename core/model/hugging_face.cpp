// SPDX-License-Identifier: GPL-3.0-or-later
// Hugging Face's config.json.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "core/model/model.h"
#include "core/model/training.h"

namespace evenkeel {
namespace {

constexpr std::int64_t kMaxSize = 1 << 24;  // hidden, ffn, vocabulary, context
constexpr std::int64_t kMaxLayers = 4096;

/// What a model_type means for our model.
struct Architecture {
  std::string_view type;
  bool isGpt;         // LayerNorm, learned positions, biases, plain MLP; else RMSNorm, rotary, no biases, gated MLP
  bool isTied;        // tie_word_embeddings where the file is silent
  bool qkvBias;       // of query, key and value
  bool isMultiQuery;  // one key and value head where the file is silent
};
constexpr std::array<Architecture, 7> kArchitectures = {{{"gpt2", true, true, true, false},
                                                         {"gpt_bigcode", true, true, true, true},
                                                         {"llama", false, false, false, false},
                                                         {"mistral", false, false, false, false},
                                                         {"phi3", false, false, false, false},
                                                         {"qwen2", false, false, true, false},
                                                         {"gemma", false, true, false, false}}};

/// A size by whichever of its names the file uses; null counts as absent.
std::int64_t sizeNamed(JsonReader& reader, std::initializer_list<std::string_view> names, std::int64_t most,
                       std::optional<std::int64_t> otherwise = {}) {
  for (const std::string_view name : names) {
    if (reader.has(name)) return reader.integer(name, {1, most});
  }
  if (otherwise) return *otherwise;
  return reader.integer(*names.begin(), {1, most});  // reports it as missing
}

/// Mixtures of experts go by many names.
bool refusesExperts(JsonReader& reader, const std::string& type) {
  constexpr std::array<std::string_view, 6> kKeys = {"num_local_experts",     "n_routed_experts", "num_experts",
                                                     "moe_intermediate_size", "moe_num_experts",  "num_experts_per_tok"};
  for (const std::string_view key : kKeys) {
    if (!reader.has(key)) continue;
    reader.fail(key, "is there: a mixture of experts, which is not supported yet", "use a dense model");
    return true;
  }
  if (type.find("moe") == std::string::npos && type != "mixtral") return false;
  reader.fail("model_type", fmt::format("is \"{}\": a mixture of experts, which is not supported yet", type.substr(0, 60)),
              "use a dense model");
  return true;
}

/// Switches that turn an architecture into one that our model does not express.
void refuseVariants(JsonReader& reader, const Architecture& architecture) {
  for (const std::string_view key : {"attention_bias", "mlp_bias"}) {
    if (reader.boolean(key, false))
      reader.fail(key, "is true: biases of some layers only are not supported", "leave it out to plan without them");
  }
  if (architecture.isGpt && reader.boolean("add_cross_attention", false))
    reader.fail("add_cross_attention", "is true: cross-attention is not supported");
}

/// Of GPT-2 and its kin.
Activation activationOf(JsonReader& reader) {
  const std::string word = reader.text("activation_function", "gelu_new");
  if (word == "gelu") return Activation::Gelu;
  if (word != "gelu_new" && word != "gelu_pytorch_tanh" && word != "gelu_fast")
    reader.fail("activation_function", fmt::format("is \"{}\"", word.substr(0, 60)), "expected gelu, gelu_new, gelu_fast or gelu_pytorch_tanh");
  return Activation::GeluTanh;
}

Model readText(JsonReader& reader, const std::string& type) {
  Model model;
  const auto found = std::ranges::find(kArchitectures, type, &Architecture::type);
  if (refusesExperts(reader, type)) return model;
  if (found == kArchitectures.end()) {
    std::string known;
    for (const Architecture& architecture : kArchitectures) known += (known.empty() ? "" : ", ") + std::string(architecture.type);
    reader.fail("model_type", fmt::format("is \"{}\"", type.substr(0, 60)), "expected one of: " + known);
    return model;
  }
  model.layers = static_cast<int>(sizeNamed(reader, {"num_hidden_layers", "n_layer", "num_layers"}, kMaxLayers));
  model.hidden = sizeNamed(reader, {"hidden_size", "n_embd", "d_model"}, kMaxSize);
  model.heads = static_cast<int>(sizeNamed(reader, {"num_attention_heads", "n_head", "num_heads"}, kMaxSize));
  const bool isMultiQuery = reader.boolean("multi_query", found->isMultiQuery);
  model.kvHeads = static_cast<int>(
      sizeNamed(reader, {"num_key_value_heads", "num_kv_heads", "n_head_kv"}, kMaxSize, isMultiQuery ? 1 : model.heads));
  model.ffn = sizeNamed(reader, {"intermediate_size", "n_inner", "ffn_dim"}, kMaxSize, 4 * model.hidden);
  model.vocab = sizeNamed(reader, {"vocab_size"}, kMaxSize);
  model.context = sizeNamed(reader, {"max_position_embeddings", "n_positions", "n_ctx"}, kMaxSequence);
  model.tiedEmbeddings = reader.boolean("tie_word_embeddings", found->isTied);
  if (reader.has("head_dim")) {
    model.headDim = reader.integer("head_dim", {1, kMaxSize});
  } else {
    const std::int64_t heads = std::max(1, model.heads);
    model.headDim = std::max<std::int64_t>(1, model.hidden / heads);
    if (model.hidden % heads != 0)
      reader.fail("hidden_size", fmt::format("is {}, no multiple of {} heads", model.hidden, heads), "give head_dim");
  }
  if (model.kvHeads < 1 || model.heads % model.kvHeads != 0)
    reader.fail("num_key_value_heads", fmt::format("is {}, which does not divide {} heads", model.kvHeads, model.heads));
  const double epsilon = found->isGpt ? 1e-5 : 1e-6;  // where the file is silent
  model.normEpsilon = reader.number(found->isGpt ? "layer_norm_epsilon" : "rms_norm_eps", {1e-12, 1e-2}, epsilon);
  if (found->isGpt) model.activation = activationOf(reader);
  if (!found->isGpt) {
    model.rotaryBase = reader.number("rope_theta", {1.0, 1e12}, model.rotaryBase);
    model.gated = true;
    model.bias = false;
    model.norm = Norm::RmsNorm;
    model.position = Position::Rotary;
  }
  if (found->qkvBias != model.bias) model.qkvBias = found->qkvBias;
  refuseVariants(reader, *found);
  return model;
}

}  // namespace

Model readHuggingFaceConfig(JsonReader& reader, const std::string& nameIfAbsent) {
  std::string name = reader.text("_name_or_path", nameIfAbsent);
  if (name.empty()) name = nameIfAbsent;
  Model model;
  if (reader.has("text_config")) {
    JsonReader text = reader.object("text_config");
    model = readText(text, text.text("model_type", "llama"));
    if (reader.has("tie_word_embeddings")) model.tiedEmbeddings = reader.boolean("tie_word_embeddings", false);
  } else {
    model = readText(reader, reader.text("model_type"));
  }
  model.name = name;
  return model;
}

}  // namespace evenkeel
