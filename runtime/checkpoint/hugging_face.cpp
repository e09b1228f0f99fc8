// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "core/base/json_reader.h"
#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/safetensors.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFileBytes = std::int64_t{4} << 30U;  // of a file that is written, as far as whole tensors allow
constexpr std::array<std::string_view, 4> kTypes = {"gpt2", "llama", "mistral", "qwen2"};

/// Of our tensors to those of one architecture: a unit's weights and biases.
class NameTable {
 public:
  NameTable(const Model& model, bool isGpt2) : model_(model), isGpt2_(isGpt2) {
    for (int unit = 0; unit < model.unitCount(); ++unit) {
      for (TensorSpec& tensor : tensorsOf(model, unit)) own_.emplace(tensor.name, std::move(tensor));
    }
  }

  void norm(const std::string& theirs, const std::string& ours) { both(theirs, {ours}, false); }
  void linear(const std::string& theirs, const std::vector<std::string>& ours) { both(theirs, ours, isGpt2_); }
  void plain(const std::string& theirs, const std::string& ours, bool isOfTrunk = true) {
    add(theirs, {ours}, false);
    tensors_.back().isOfTrunk = isOfTrunk;
  }

  std::vector<ForeignTensor> take() { return std::move(tensors_); }

 private:
  void both(const std::string& theirs, const std::vector<std::string>& ours, bool isTransposed) {
    for (const char* kind : {".weight", ".bias"}) {
      std::vector<std::string> parts;
      for (const std::string& name : ours) parts.push_back(name + kind);
      if (own_.contains(parts.front())) add(theirs + kind, parts, isTransposed && kind == std::string_view(".weight"));
    }
  }
  void add(const std::string& theirs, const std::vector<std::string>& ours, bool isTransposed) {
    ForeignTensor tensor{.name = theirs, .parts = {}, .shape = {}, .isTransposed = isTransposed};
    for (const std::string& name : ours) tensor.parts.push_back(own_.at(name));
    tensor.shape = tensor.parts.front().shape;
    for (std::size_t i = 1; i < tensor.parts.size(); ++i) tensor.shape[0] += tensor.parts[i].shape[0];
    if (ours.front() == "embedding.token" || ours.front() == "head.weight") tensor.shape[0] = model_.vocab;
    if (isTransposed) std::swap(tensor.shape[0], tensor.shape[1]);
    tensors_.push_back(std::move(tensor));
  }

  const Model& model_;
  bool isGpt2_;
  std::map<std::string, TensorSpec> own_;
  std::vector<ForeignTensor> tensors_;
};

std::vector<ForeignTensor> tensorsOfGpt2(const Model& model) {
  NameTable table(model, true);
  table.plain("wte.weight", "embedding.token");
  table.plain("wpe.weight", "embedding.position");
  for (int i = 0; i < model.layers; ++i) {
    const std::string theirs = fmt::format("h.{}.", i), ours = fmt::format("layer.{}.", i);
    table.norm(theirs + "ln_1", ours + "norm1");
    table.linear(theirs + "attn.c_attn", {ours + "attention.query", ours + "attention.key", ours + "attention.value"});
    table.linear(theirs + "attn.c_proj", {ours + "attention.projection"});
    table.norm(theirs + "ln_2", ours + "norm2");
    table.linear(theirs + "mlp.c_fc", {ours + "mlp.fc1"});
    table.linear(theirs + "mlp.c_proj", {ours + "mlp.fc2"});
  }
  table.norm("ln_f", "head.norm");
  if (!model.tiedEmbeddings) table.plain("lm_head.weight", "head.weight", false);
  return table.take();
}

std::vector<ForeignTensor> tensorsOfLlama(const Model& model) {
  NameTable table(model, false);
  table.plain("embed_tokens.weight", "embedding.token");
  for (int i = 0; i < model.layers; ++i) {
    const std::string theirs = fmt::format("layers.{}.", i), ours = fmt::format("layer.{}.", i);
    table.norm(theirs + "input_layernorm", ours + "norm1");
    table.linear(theirs + "self_attn.q_proj", {ours + "attention.query"});
    table.linear(theirs + "self_attn.k_proj", {ours + "attention.key"});
    table.linear(theirs + "self_attn.v_proj", {ours + "attention.value"});
    table.linear(theirs + "self_attn.o_proj", {ours + "attention.projection"});
    table.norm(theirs + "post_attention_layernorm", ours + "norm2");
    table.linear(theirs + "mlp.gate_proj", {ours + "mlp.gate"});
    table.linear(theirs + "mlp.up_proj", {ours + "mlp.fc1"});
    table.linear(theirs + "mlp.down_proj", {ours + "mlp.fc2"});
  }
  table.norm("norm", "head.norm");
  if (!model.tiedEmbeddings) table.plain("lm_head.weight", "head.weight", false);
  return table.take();
}

std::string_view trunkOf(const std::string& architecture) { return architecture == "gpt2" ? "transformer." : "model."; }

/// Masks and tables that older files keep beside the weights.
bool isBuffer(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with("rotary_emb.inv_freq");
}

/// The weights of a folder, by name.
class ForeignFiles {
 public:
  static Result<ForeignFiles> open(const fs::path& folder) {
    ForeignFiles files;
    std::error_code failure;
    const fs::path index = folder / "model.safetensors.index.json", single = folder / "model.safetensors";
    std::set<std::string> names;
    if (fs::exists(index, failure)) {
      const auto json = readJsonFile(index);
      if (!json) return json.error();
      const auto map = json->is_object() ? json->find("weight_map") : json->end();
      if (!json->is_object() || map == json->end() || !map->is_object()) return invalidInput(index.string(), "has no weight_map");
      for (const auto& [tensor, file] : map->items()) {
        if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
          return invalidInput(index.string() + " /weight_map/" + tensor.substr(0, 80), "is no name of a file");
        names.insert(file.get<std::string>());
      }
    } else if (fs::exists(single, failure)) {
      names.insert("model.safetensors");
    } else {
      return invalidInput(folder.string(), "holds neither model.safetensors nor model.safetensors.index.json",
                          "convert files of other kinds with transformers: save_pretrained(folder, safe_serialization=True)");
    }
    for (const std::string& name : names) {
      auto file = SafetensorsFile::open(folder / name);
      if (!file) return std::move(file).error();
      files.files_.push_back(*std::move(file));
    }
    for (const SafetensorsFile& file : files.files_) {
      for (const StoredTensor& tensor : file.tensors()) files.names_.insert(tensor.name);
    }
    return files;
  }

  [[nodiscard]] const std::set<std::string>& names() const { return names_; }
  [[nodiscard]] Result<std::vector<float>> read(const std::string& name, const std::vector<std::int64_t>& shape) const {
    for (const SafetensorsFile& file : files_) {
      const StoredTensor* stored = file.find(name);
      if (stored == nullptr) continue;
      if (stored->shape != shape)
        return invalidInput(name, fmt::format("has the shape ({}), the model's is ({})", text(stored->shape), text(shape)), "take the config.json that belongs to the weights");
      std::size_t elements = 1;
      for (const std::int64_t size : shape) elements *= static_cast<std::size_t>(size);
      std::vector<float> values(elements);
      if (auto read = file.read(*stored, values); !read) return read.error();
      return values;
    }
    return invalidInput(name, "is in none of the files", "take the config.json that belongs to the weights");
  }

 private:
  static std::string text(const std::vector<std::int64_t>& shape) {
    std::string text;
    for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return text;
  }
  std::vector<SafetensorsFile> files_;
  std::set<std::string> names_;
};

std::vector<float> transposed(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
  std::vector<float> turned(values.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) turned[static_cast<std::size_t>(c * rows + r)] = values[static_cast<std::size_t>(r * columns + c)];
  }
  return turned;
}

/// Why the layers of this config.json compute something else than ours; readHuggingFaceConfig has refused what changes shapes.
std::optional<Error> objectionTo(const Json& config, const std::string& source) {
  JsonContext context{source, {}};
  JsonReader reader(config, context);
  const std::string type = reader.text("model_type", "");
  if (std::ranges::find(kTypes, type) == kTypes.end())
    reader.fail("model_type", fmt::format("is \"{}\", whose weights are not understood", type.substr(0, 60)), "expected gpt2, llama, mistral or qwen2");
  const auto scaling = config.is_object() ? config.find("rope_scaling") : config.end();
  if (config.is_object() && scaling != config.end() && !scaling->is_null())
    reader.fail("rope_scaling", "is set: scaled rotary positions are not supported", "take weights without them");
  if (reader.has("hidden_act") && type != "gpt2" && reader.text("hidden_act") != "silu")
    reader.fail("hidden_act", fmt::format("is \"{}\"", reader.text("hidden_act").substr(0, 60)), "expected silu");
  return context.error;
}

/// What holds only for short sequences.
std::vector<std::string> notesOn(const Json& config) {
  const auto window = config.find("sliding_window");
  const auto isUsed = config.find("use_sliding_window");
  if (window == config.end() || !window->is_number_integer() || (isUsed != config.end() && *isUsed == false)) return {};
  return {fmt::format("sliding_window is {}: sequences longer than that see all of their tokens here, and only so many there", window->dump())};
}

/// Values of one of our tensors at a time, in the order of foreignTensors.
class Importer {
 public:
  Importer(const Model& model, std::string architecture, const ForeignFiles& files)
      : files_(files), tensors_(foreignTensors(model, architecture)) {
    const std::string trunk(trunkOf(architecture));
    const bool hasTrunk = std::ranges::any_of(files.names(), [&](const std::string& name) { return name.starts_with(trunk); });
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (hasTrunk && tensors_[t].isOfTrunk) tensors_[t].name = trunk + tensors_[t].name;
      for (std::size_t part = 0; part < tensors_[t].parts.size(); ++part) places_[tensors_[t].parts[part].name] = {t, part};
    }
    ignored_ = model.tiedEmbeddings ? "lm_head.weight" : "";
  }

  /// Of embeddings that the config ties: their other copy in the files has to be the same one.
  [[nodiscard]] std::optional<Error> contradiction() const {
    if (ignored_.empty() || !files_.names().contains(ignored_)) return std::nullopt;
    const auto embedding = std::ranges::find_if(tensors_, [](const ForeignTensor& tensor) { return tensor.name.ends_with("embed_tokens.weight") || tensor.name.ends_with("wte.weight"); });
    assert(embedding != tensors_.end());
    const auto own = files_.read(embedding->name, embedding->shape), head = files_.read(ignored_, embedding->shape);
    if (!own) return own.error();
    if (!head) return head.error();
    if (*own == *head) return std::nullopt;
    return invalidInput(ignored_, "differs from the embedding, and config.json ties the two (tie_word_embeddings)", "take the config.json that belongs to the weights, or set tie_word_embeddings to false in it");
  }

  /// Tensors of the files that the model lacks.
  [[nodiscard]] std::optional<Error> objection() const {
    std::vector<std::string> unknown;
    for (const std::string& name : files_.names()) {
      const bool isKnown = std::ranges::find(tensors_, name, &ForeignTensor::name) != tensors_.end();
      if (!isKnown && name != ignored_ && !isBuffer(name)) unknown.push_back(name);
    }
    if (unknown.empty()) return std::nullopt;
    const std::string others = unknown.size() > 1 ? fmt::format(" and {} more", unknown.size() - 1) : "";
    return invalidInput(unknown.front().substr(0, 120) + others, "is in the files, but not in the model", "take the config.json that belongs to the weights");
  }

  Result<std::vector<float>> valuesOf(const TensorSpec& own) {
    const auto [index, part] = places_.at(own.name);
    const ForeignTensor& tensor = tensors_[index];
    if (!read_.contains(index)) {
      if (tensor.parts.size() == 1) read_.clear();  // those of several parts, a weight and its bias, are asked for in turn
      auto values = files_.read(tensor.name, tensor.shape);
      if (!values) return values;
      read_[index] = tensor.isTransposed ? transposed(*values, tensor.shape[0], tensor.shape[1]) : *std::move(values);
    }
    std::size_t first = 0;
    for (std::size_t before = 0; before < part; ++before) first += static_cast<std::size_t>(tensor.parts[before].elements());
    const std::vector<float>& all = read_.at(index);
    const auto count = std::min(static_cast<std::size_t>(own.elements()), all.size() - first);
    std::vector<float> values(all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(first + count));
    values.resize(static_cast<std::size_t>(own.elements()));  // rows that pad the vocabulary
    return values;
  }

 private:
  const ForeignFiles& files_;
  std::vector<ForeignTensor> tensors_;
  std::map<std::string, std::pair<std::size_t, std::size_t>> places_;  // by our name: which of them, and which part
  std::map<std::size_t, std::vector<float>> read_;
  std::string ignored_;
};

/// Every tensor once, in the order of the units.
std::vector<TensorSpec> tensorsOfModel(const Model& model) {
  std::vector<TensorSpec> all;
  std::set<std::string> seen;
  for (int unit = 0; unit < model.unitCount(); ++unit) {
    for (TensorSpec& tensor : tensorsOf(model, unit)) {
      if (seen.insert(tensor.name).second) all.push_back(std::move(tensor));
    }
  }
  return all;
}

Json configOf(const Model& model, const std::string& architecture) {
  if (architecture == "gpt2")
    return {{"architectures", {"GPT2LMHeadModel"}},
            {"model_type", "gpt2"},
            {"n_layer", model.layers},
            {"n_embd", model.hidden},
            {"n_head", model.heads},
            {"n_inner", model.ffn},
            {"n_positions", model.context},
            {"vocab_size", model.vocab},
            {"layer_norm_epsilon", model.normEpsilon},
            {"activation_function", model.activation == Activation::GeluTanh ? "gelu_new" : "gelu"},
            {"tie_word_embeddings", model.tiedEmbeddings},
            {"torch_dtype", "float32"}};
  return {{"architectures", {architecture == "qwen2" ? "Qwen2ForCausalLM" : "LlamaForCausalLM"}},
          {"model_type", architecture},
          {"num_hidden_layers", model.layers},
          {"hidden_size", model.hidden},
          {"num_attention_heads", model.heads},
          {"num_key_value_heads", model.kvHeads},
          {"head_dim", model.headDim},
          {"intermediate_size", model.ffn},
          {"max_position_embeddings", model.context},
          {"vocab_size", model.vocab},
          {"rms_norm_eps", model.normEpsilon},
          {"rope_theta", model.rotaryBase},
          {"hidden_act", "silu"},
          {"tie_word_embeddings", model.tiedEmbeddings},
          {"torch_dtype", "float32"}};
}

/// A foreign tensor from the parts that a checkpoint holds.
Result<std::vector<float>> joined(const CheckpointReader& reader, const ForeignTensor& tensor) {
  std::size_t elements = 1;
  for (const std::int64_t size : tensor.shape) elements *= static_cast<std::size_t>(size);
  std::vector<float> values;
  for (const TensorSpec& part : tensor.parts) {
    auto own = reader.read(ModelState::Weights, part);
    if (!own) return own;
    values.insert(values.end(), own->begin(), own->end());
  }
  values.resize(elements);  // without the rows that pad the vocabulary
  return tensor.isTransposed ? transposed(values, tensor.shape[1], tensor.shape[0]) : values;
}

Result<void> writeFiles(const CheckpointReader& reader, const std::vector<ForeignTensor>& tensors, const fs::path& folder,
                        const ConversionProgress& progress) {
  std::vector<std::vector<StoredTensor>> files(1);
  for (const ForeignTensor& tensor : tensors) {
    std::int64_t bytes = sizeof(float), before = files.back().empty() ? 0 : files.back().back().last;
    for (const std::int64_t size : tensor.shape) bytes *= size;
    if (before > 0 && before + bytes > kFileBytes) {
      files.emplace_back();
      before = 0;
    }
    files.back().push_back({.name = tensor.name, .type = "F32", .shape = tensor.shape, .first = before, .last = before + bytes});
  }
  Json index = {{"metadata", Json::object()}, {"weight_map", Json::object()}};
  std::size_t next = 0;
  for (std::size_t f = 0; f < files.size(); ++f) {
    const std::string name = files.size() == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", f + 1, files.size());
    std::ofstream stream(folder / name, std::ios::binary);
    stream << safetensorsHeader(files[f], {{"format", "pt"}});
    for (const StoredTensor& stored : files[f]) {
      const auto values = joined(reader, tensors[next++]);
      if (!values) return values.error();
      stream.write(reinterpret_cast<const char*>(values->data()), static_cast<std::streamsize>(values->size() * sizeof(float)));
      index["weight_map"][stored.name] = name;
      if (progress) progress(next, tensors.size());
    }
    if (!stream.flush()) return failed((folder / name).string(), "cannot be written: the disk is full or broken");
  }
  return files.size() == 1 ? Result<void>() : writeFileAtomically(folder / "model.safetensors.index.json", prettyText(index));
}

}  // namespace

Result<std::string> architectureOf(const Model& model) {
  const auto lacks = [&](const std::string& what) {
    return invalidInput("model " + model.name, what + ", which neither GPT-2 nor Llama nor Qwen2 has", "keep our own safetensors files");
  };
  if (model.opaque) return lacks("is a table of layers");
  if (model.norm == Norm::LayerNorm) {
    if (model.gated) return lacks("has LayerNorm and a gated MLP");
    if (model.position != Position::Learned) return lacks("has LayerNorm and rotary positions");
    if (!model.bias || !model.hasQkvBias()) return lacks("has LayerNorm and no biases");
    if (model.kvHeads != model.heads || model.heads * model.headDim != model.hidden) return lacks("has LayerNorm and heads that differ in number or do not make up the hidden size");
    return std::string("gpt2");
  }
  if (!model.gated) return lacks("has RMSNorm and a plain MLP");
  if (model.position != Position::Rotary) return lacks("has RMSNorm and learned positions");
  if (model.bias) return lacks("has RMSNorm and biases");
  return std::string(model.hasQkvBias() ? "qwen2" : "llama");
}

std::vector<ForeignTensor> foreignTensors(const Model& model, const std::string& architecture) {
  return architecture == "gpt2" ? tensorsOfGpt2(model) : tensorsOfLlama(model);
}

Result<ConvertedWeights> importHuggingFace(const fs::path& folder, const fs::path& directory, const ConversionProgress& progress) {
  const fs::path configFile = folder / "config.json";
  const auto config = readJsonFile(configFile);
  if (!config) return config.error();
  if (auto objection = objectionTo(*config, configFile.string())) return *std::move(objection);
  auto model = loadModel(configFile);
  if (!model) return std::move(model).error();
  auto architecture = architectureOf(*model);
  if (!architecture) return std::move(architecture).error();
  auto files = ForeignFiles::open(folder);
  if (!files) return std::move(files).error();
  Importer importer(*model, *std::move(architecture), *files);
  if (auto objection = importer.objection()) return *std::move(objection);
  if (auto contradiction = importer.contradiction()) return *std::move(contradiction);

  if (!checkpointsIn(directory).empty()) return invalidInput(directory.string(), "holds checkpoints already", "name another folder");
  const std::vector<TensorSpec> tensors = tensorsOfModel(*model);
  std::vector<std::string> notes = notesOn(*config);
  CheckpointWriter writer(directory, 1, {.step = 0, .model = *model, .sequenceLength = model->context, .globalBatch = 1}, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto values = importer.valuesOf(tensors[i]);
    if (!values) return std::move(values).error();
    if (const auto broken = std::ranges::count_if(*values, [](float value) { return !std::isfinite(value); }); broken > 0)
      notes.push_back(fmt::format("{} of the {} numbers of {} are no finite numbers: training from them gives NaN", broken, values->size(), tensors[i].name));
    writer.put(*std::move(values));
    if (progress) progress(i + 1, tensors.size());
  }
  auto written = writer.wait();
  if (!written) return std::move(written).error();
  return ConvertedWeights{.model = *model, .folder = *written, .parameters = parameterCount(*model), .notes = std::move(notes)};
}

Result<ConvertedWeights> exportHuggingFace(const fs::path& checkpoint, const fs::path& folder, const ConversionProgress& progress) {
  auto reader = CheckpointReader::open(checkpoint);
  if (!reader) return std::move(reader).error();
  const Model& model = reader->facts().model;
  const auto architecture = architectureOf(model);
  if (!architecture) return architecture.error();
  std::error_code failure;
  if (fs::exists(folder, failure) && !fs::is_empty(folder, failure)) return invalidInput(folder.string(), "is not empty", "name a folder that does not exist yet");
  const fs::path part(folder.string() + ".part");
  fs::remove_all(part, failure);
  if (!fs::create_directories(part, failure)) return failed(part.string(), failure.message());
  std::vector<ForeignTensor> tensors = foreignTensors(model, *architecture);
  for (ForeignTensor& tensor : tensors) {
    if (tensor.isOfTrunk) tensor.name = std::string(trunkOf(*architecture)) + tensor.name;
  }
  auto written = writeFiles(*reader, tensors, part, progress);
  if (written) written = writeFileAtomically(part / "config.json", prettyText(configOf(model, *architecture)));
  if (written) {
    fs::remove(folder, failure);
    fs::rename(part, folder, failure);
    if (failure) written = failed(folder.string(), failure.message());
  }
  if (!written) {
    fs::remove_all(part, failure);
    return written.error();
  }
  ConvertedWeights converted{.model = model, .folder = folder, .parameters = parameterCount(model), .step = reader->facts().step, .notes = {}};
  for (const Error& broken : reader->passedOver())
    converted.notes.push_back(fmt::format("{}; step {}, the one before it, is exported", broken.text(), converted.step));
  if (*architecture == "gpt2" && model.activation == Activation::Gelu)
    converted.notes.emplace_back("activation_function is gelu, the exact one: GPT-2 itself has gelu_new");
  return converted;
}

}  // namespace evenkeel
