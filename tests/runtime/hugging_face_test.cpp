// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <thread>

#include "core/base/json_reader.h"
#include "core/base/random.h"
#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/safetensors.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// The vocabulary is no multiple of 128: its rows are padded here and not there.
constexpr const char* kGpt2 = R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "n_positions": 16, "vocab_size": 50})";
constexpr const char* kLlama = R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
  "intermediate_size": 12, "vocab_size": 50, "max_position_embeddings": 16, "rope_theta": 500000.0, "rms_norm_eps": 1e-5, "tie_word_embeddings": false})";
constexpr const char* kQwen2 = R"({"model_type": "qwen2", "num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 12,
  "vocab_size": 50, "max_position_embeddings": 16, "tie_word_embeddings": true})";

std::vector<TensorSpec> tensorsOfModel(const Model& model) {
  std::vector<TensorSpec> all;
  std::set<std::string> seen;
  for (int unit = 0; unit < model.unitCount(); ++unit) {
    for (const TensorSpec& tensor : tensorsOf(model, unit)) {
      if (seen.insert(tensor.name).second) all.push_back(tensor);
    }
  }
  return all;
}

/// Element i of a tensor is a number of its own; rows that pad the vocabulary are 0.
std::vector<float> valuesOf(const Model& model, const TensorSpec& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  const CounterRandom random(5, tensor.name);
  const bool isPadded = tensor.shape[0] == model.paddedVocab();
  const auto real = static_cast<std::size_t>(isPadded ? model.vocab * model.hidden : tensor.elements());
  for (std::size_t i = 0; i < real; ++i) values[i] = static_cast<float>(random.normal(i));
  return values;
}

class HuggingFace : public ::testing::Test {
 protected:
  Model modelOf(const char* config) const { return *loadModel(folder_.file("config.json", config)); }
  /// A checkpoint of step 7 with valuesOf everything.
  fs::path saved(const Model& model) const {
    const std::vector<TensorSpec> tensors = tensorsOfModel(model);
    CheckpointWriter writer(folder_.path() / "saved", 1, {.step = 7, .model = model, .sequenceLength = 16, .globalBatch = 1}, tensors);
    for ([[maybe_unused]] const ModelState state : kModelStates) {
      for (const TensorSpec& tensor : tensors) writer.put(valuesOf(model, tensor));
    }
    return *writer.wait();
  }
  /// The error of importing a folder with this config.json and these tensors, in fp32.
  std::string errorOf(const std::string& config, const std::vector<StoredTensor>& tensors) const {
    const fs::path theirs = folder_.path() / "theirs";
    fs::create_directories(theirs);
    const std::int64_t bytes = tensors.empty() ? 0 : tensors.back().last;
    EXPECT_TRUE(writeFileAtomically(theirs / "config.json", config));
    EXPECT_TRUE(writeFileAtomically(theirs / "model.safetensors", safetensorsHeader(tensors, {}) + std::string(static_cast<std::size_t>(bytes), '\0')));
    const auto imported = importHuggingFace(theirs, folder_.path() / "ours");
    EXPECT_TRUE(checkpointsIn(folder_.path() / "ours").empty()) << "nothing stays of what failed";
    return imported ? "none" : imported.error().text();
  }
  /// What a complete folder of that model holds.
  static std::vector<StoredTensor> complete(const Model& model) {
    std::vector<StoredTensor> stored;
    std::int64_t end = 0;
    const std::string architecture = *architectureOf(model);
    for (const ForeignTensor& tensor : foreignTensors(model, architecture)) {
      std::int64_t bytes = 4;
      for (const std::int64_t size : tensor.shape) bytes *= size;
      stored.push_back({.name = tensor.name, .type = "F32", .shape = tensor.shape, .first = end, .last = end + bytes});
      end += bytes;
    }
    return stored;
  }
  TemporaryDirectory folder_;
};

// transformers PR #16639, Megatron-Bridge #1853 (field-faults): padded against real vocabulary.
TEST_F(HuggingFace, WeightsComeBackAsTheyWent) {
  for (const char* config : {kGpt2, kLlama, kQwen2}) {
    const Model model = modelOf(config);
    ASSERT_NE(model.vocab, model.paddedVocab());
    const auto exported = exportHuggingFace(saved(model), folder_.path() / "theirs");
    ASSERT_TRUE(exported) << exported.error().text();
    const auto imported = importHuggingFace(folder_.path() / "theirs", folder_.path() / "ours");
    ASSERT_TRUE(imported) << imported.error().text();
    EXPECT_EQ(imported->parameters, parameterCount(model));
    const auto reader = CheckpointReader::open(folder_.path() / "ours");
    ASSERT_TRUE(reader) << reader.error().text();
    EXPECT_EQ(reader->facts().step, 0);
    EXPECT_FALSE(reader->objection(model));
    for (const TensorSpec& tensor : tensorsOfModel(model)) {
      EXPECT_EQ(*reader->read(ModelState::Weights, tensor), valuesOf(model, tensor)) << tensor.name;
      EXPECT_EQ(*reader->read(ModelState::FirstMoments, tensor), std::vector<float>(static_cast<std::size_t>(tensor.elements())));
    }
    fs::remove_all(folder_.path() / "theirs");
    fs::remove_all(folder_.path() / "ours");
  }
}

TEST_F(HuggingFace, Gpt2KeepsQueryKeyAndValueSideBySide) {
  const Model model = modelOf(kGpt2);
  ASSERT_TRUE(exportHuggingFace(saved(model), folder_.path() / "theirs"));
  const auto file = SafetensorsFile::open(folder_.path() / "theirs/model.safetensors");
  ASSERT_TRUE(file) << file.error().text();
  const StoredTensor* const joined = file->find("transformer.h.1.attn.c_attn.weight");
  ASSERT_NE(joined, nullptr);
  ASSERT_EQ(joined->shape, (std::vector<std::int64_t>{8, 24}));  // input features first
  std::vector<float> values(8 * 24);
  ASSERT_TRUE(file->read(*joined, values));
  int part = 0;
  for (const char* name : {"layer.1.attention.query.weight", "layer.1.attention.key.weight", "layer.1.attention.value.weight"}) {
    const std::vector<float> own = valuesOf(model, {.name = name, .shape = {8, 8}});
    for (std::size_t out = 0; out < 8; ++out) {
      for (std::size_t in = 0; in < 8; ++in) EXPECT_EQ(values[in * 24 + 8 * static_cast<std::size_t>(part) + out], own[out * 8 + in]) << name;
    }
    ++part;
  }
  EXPECT_EQ(file->find("transformer.wte.weight")->shape, (std::vector<std::int64_t>{50, 8})) << "without the rows that pad it";
  EXPECT_EQ(file->find("lm_head.weight"), nullptr) << "it is tied";
}

TEST_F(HuggingFace, ConfigsSayTheSameModel) {
  for (const char* config : {kGpt2, kLlama, kQwen2}) {
    const Model model = modelOf(config);
    ASSERT_TRUE(exportHuggingFace(saved(model), folder_.path() / "theirs"));
    Json own = toJson(model), back = toJson(*loadModel(folder_.path() / "theirs/config.json"));
    own.erase("name");
    back.erase("name");
    EXPECT_EQ(own, back);
    fs::remove_all(folder_.path() / "theirs");
  }
}

TEST_F(HuggingFace, TakesTheKindsOfFilesThatThereAre) {
  const Model model = modelOf(kQwen2);
  std::vector<StoredTensor> tensors = complete(model);
  for (StoredTensor& tensor : tensors) tensor.name = "model." + tensor.name;
  const fs::path theirs = folder_.path() / "theirs";
  fs::create_directories(theirs);
  // two files in bf16 with a list, masks of older versions, and a head that is the embedding again
  Json index = {{"weight_map", Json::object()}};
  std::vector<StoredTensor> halves[2];
  std::string bytes[2];
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::size_t f = i % 2;
    const auto count = static_cast<std::size_t>((tensors[i].last - tensors[i].first) / 4);
    const auto before = static_cast<std::int64_t>(bytes[f].size());
    for (std::size_t e = 0; e < count; ++e) {
      const auto half = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(i + 1)) >> 16U);
      bytes[f] += std::string(reinterpret_cast<const char*>(&half), 2);
    }
    halves[f].push_back({.name = tensors[i].name, .type = "BF16", .shape = tensors[i].shape, .first = before, .last = static_cast<std::int64_t>(bytes[f].size())});
    index["weight_map"][tensors[i].name] = f == 0 ? "a.safetensors" : "b.safetensors";
  }
  const auto end = static_cast<std::int64_t>(bytes[1].size());
  halves[1].push_back({.name = "model.layers.0.self_attn.rotary_emb.inv_freq", .type = "F32", .shape = {1}, .first = end, .last = end + 4});
  halves[1].push_back({.name = "lm_head.weight", .type = "F32", .shape = {50, 8}, .first = end + 4, .last = end + 4 + 1600});
  bytes[1] += std::string(4, '\0');
  for (int i = 0; i < 400; ++i) bytes[1] += std::string("\0\0\x80\x3f", 4);  // 1.0, as the embedding
  ASSERT_TRUE(writeFileAtomically(theirs / "config.json", kQwen2));
  ASSERT_TRUE(writeFileAtomically(theirs / "model.safetensors.index.json", prettyText(index)));
  ASSERT_TRUE(writeFileAtomically(theirs / "a.safetensors", safetensorsHeader(halves[0], {}) + bytes[0]));
  ASSERT_TRUE(writeFileAtomically(theirs / "b.safetensors", safetensorsHeader(halves[1], {}) + bytes[1]));
  std::size_t told = 0;
  const auto imported = importHuggingFace(theirs, folder_.path() / "ours", [&](std::size_t done, std::size_t) { told = done; });
  ASSERT_TRUE(imported) << imported.error().text();
  EXPECT_EQ(told, tensorsOfModel(model).size());
  const auto reader = CheckpointReader::open(imported->folder);
  ASSERT_TRUE(reader) << reader.error().text();
  const TensorSpec token{.name = "embedding.token", .shape = {128, 8}};
  const auto values = reader->read(ModelState::Weights, token);
  ASSERT_TRUE(values) << values.error().text();
  EXPECT_EQ(values->front(), 1.0F);
  EXPECT_EQ((*values)[50 * 8 - 1], 1.0F);
  EXPECT_EQ((*values)[50 * 8], 0.0F) << "a row that pads";
  // another head than the embedding
  bytes[1].back() = '\x40';
  ASSERT_TRUE(writeFileAtomically(theirs / "b.safetensors", safetensorsHeader(halves[1], {}) + bytes[1]));
  EXPECT_THAT(importHuggingFace(theirs, folder_.path() / "other").error().text(), HasSubstr("lm_head.weight: differs from the embedding"));
}

// It spoke of "checkpoints before it" and left an empty folder. The disk is that of a thread's own mount namespace.
TEST_F(HuggingFace, OntoAFullDiskSaysWhatIsMissingAndLeavesNothing) {
  ASSERT_TRUE(exportHuggingFace(saved(modelOf(kGpt2)), folder_.path() / "theirs"));
  const fs::path disk = folder_.path() / "disk";
  fs::create_directory(disk);
  std::optional<Result<ConvertedWeights>> imported;
  bool isEmpty = false;
  std::jthread([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    if (::mount("none", disk.c_str(), "tmpfs", 0, "size=8k") != 0) return;
    imported = importHuggingFace(folder_.path() / "theirs", disk / "new" / "ours");
    isEmpty = fs::is_empty(disk);
  }).join();
  if (!imported) GTEST_SKIP() << "only root has a disk to fill";
  ASSERT_FALSE(*imported);
  EXPECT_EQ(imported->error().code, Error::Code::Failed);
  EXPECT_THAT(imported->error().text(), ::testing::AllOf(HasSubstr("No space left on device"), HasSubstr("MB and 0.0 MB are free there: make room, or name another folder"),
                                                         ::testing::Not(HasSubstr("before it"))));
  EXPECT_TRUE(isEmpty);
}

TEST_F(HuggingFace, SaysWhichWeightsAreNoNumbers) {
  const Model model = modelOf(kQwen2);
  ASSERT_TRUE(exportHuggingFace(saved(model), folder_.path() / "theirs"));
  const fs::path file = folder_.path() / "theirs/model.safetensors";
  std::string bytes = *readFile(file);
  EXPECT_TRUE(importHuggingFace(folder_.path() / "theirs", folder_.path() / "good")->notes.empty());
  for (int i = 0; i < 4; ++i) bytes[bytes.size() - 1 - static_cast<std::size_t>(i)] = '\xff';
  ASSERT_TRUE(writeFileAtomically(file, bytes));
  const auto imported = importHuggingFace(folder_.path() / "theirs", folder_.path() / "bad");
  ASSERT_TRUE(imported) << imported.error().text();
  EXPECT_THAT(imported->notes, ::testing::ElementsAre(HasSubstr("1 of the")));
}

TEST_F(HuggingFace, SaysWhichStepIsExported) {
  const Model model = modelOf(kQwen2);
  const fs::path checkpoint = saved(model);
  const auto exported = exportHuggingFace(checkpoint.parent_path(), folder_.path() / "theirs");
  ASSERT_TRUE(exported) << exported.error().text();
  EXPECT_EQ(exported->step, 7);
  EXPECT_TRUE(exported->notes.empty());
  // a newer one that is broken
  const fs::path newer = checkpoint.parent_path() / "step-0000000009";
  fs::copy(checkpoint, newer, fs::copy_options::recursive);
  for (const auto& entry : fs::directory_iterator(newer)) {
    if (entry.path().extension() == ".safetensors") fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
  }
  const auto older = exportHuggingFace(checkpoint.parent_path(), folder_.path() / "older");
  ASSERT_TRUE(older) << older.error().text();
  EXPECT_EQ(older->step, 7);
  EXPECT_THAT(older->notes, ::testing::ElementsAre(::testing::AllOf(HasSubstr("step-0000000009"), HasSubstr("step 7, the one before it, is exported"))));
}

TEST_F(HuggingFace, SaysWhatDoesNotFit) {
  const Model gpt2 = modelOf(kGpt2);
  std::vector<StoredTensor> tensors = complete(gpt2);
  std::vector<StoredTensor> fewer(tensors.begin(), tensors.end() - 1);
  EXPECT_THAT(errorOf(kGpt2, fewer), HasSubstr("ln_f.bias: is in none of the files"));
  std::vector<StoredTensor> more = tensors;
  more.push_back({.name = "h.2.ln_1.weight", .type = "F32", .shape = {8}, .first = tensors.back().last, .last = tensors.back().last + 32});
  EXPECT_THAT(errorOf(kGpt2, more), HasSubstr("h.2.ln_1.weight: is in the files, but not in the model"));
  std::vector<StoredTensor> otherShape = tensors;
  otherShape.front().shape = {8, 50};
  EXPECT_THAT(errorOf(kGpt2, otherShape), HasSubstr("has the shape (8, 50), the model's is (50, 8)"));
  std::vector<StoredTensor> otherType = tensors;
  otherType.back().type = "I32";
  EXPECT_THAT(errorOf(kGpt2, otherType), HasSubstr("ln_f.bias is of type I32"));
  EXPECT_THAT(errorOf(R"({"model_type": "bloom"})", tensors), HasSubstr("bloom"));
  Json scaled = *parseJson(kLlama, "llama");
  scaled["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  EXPECT_THAT(errorOf(scaled.dump(), tensors), HasSubstr("scaled rotary positions are not supported"));
  EXPECT_THAT(errorOf("[]", tensors), HasSubstr("config.json"));
  fs::remove(folder_.path() / "theirs/model.safetensors");
  ASSERT_TRUE(writeFileAtomically(folder_.path() / "theirs/config.json", kGpt2));
  EXPECT_THAT(importHuggingFace(folder_.path() / "theirs", folder_.path() / "ours").error().text(), HasSubstr("holds neither model.safetensors"));
}

TEST_F(HuggingFace, RefusesModelsThatItsArchitecturesLack) {
  Model model = modelOf(kLlama);
  model.bias = true;
  EXPECT_THAT(exportHuggingFace(saved(model), folder_.path() / "theirs").error().text(), HasSubstr("has RMSNorm and biases"));
  EXPECT_FALSE(fs::exists(folder_.path() / "theirs"));
  ASSERT_TRUE(exportHuggingFace(saved(modelOf(kLlama)), folder_.path() / "theirs"));
  EXPECT_THAT(exportHuggingFace(folder_.path() / "saved", folder_.path() / "theirs").error().text(), HasSubstr("is not empty"));
}

}  // namespace
}  // namespace evenkeel
