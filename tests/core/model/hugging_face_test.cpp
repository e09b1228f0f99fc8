// SPDX-License-Identifier: GPL-3.0-or-later
// config.json files as far as sizes go, typed from the published hyper-parameters; counts as the model hubs quote them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/model.h"
#include "tests/support/json_mutation.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

Result<Model> fromConfig(const Json& json) {
  JsonContext context{"config.json", {}};
  JsonReader reader(json, context);
  Model model = readHuggingFaceConfig(reader, "m");
  if (context.error) return *context.error;
  return model;
}
Result<Model> fromText(const std::string& text) {
  const auto json = parseJson(text, "config.json");
  if (!json) return json.error();
  return fromConfig(*json);
}

struct Published {
  const char* name;
  std::int64_t parameters;
  const char* config;
};
const std::vector<Published>& published() {
  static const std::vector<Published>
      models =
          {
              {"gpt2", 124'439'808,
               R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": null, "vocab_size": 50257, "n_positions": 1024})"},
              {"gpt2-medium", 354'823'168,
               R"({"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16, "vocab_size": 50257, "n_ctx": 1024})"},
              {"gpt2-large", 774'030'080,
               R"({"model_type": "gpt2", "n_embd": 1280, "n_layer": 36, "n_head": 20, "vocab_size": 50257, "n_positions": 1024})"},
              {"gpt2-xl", 1'557'611'200,
               R"({"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25, "vocab_size": 50257, "n_positions": 1024})"},
              {"starcoder", 15'517'456'384,
               R"({"model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48, "n_inner": 24576, "multi_query": true, "vocab_size": 49152, "n_positions": 8192})"},
              {"starcoderbase-1b", 1'137'207'296,
               R"({"model_type": "gpt_bigcode", "n_embd": 2048, "n_layer": 24, "n_head": 16, "n_inner": 8192, "multi_query": true, "vocab_size": 49152, "n_positions": 8192})"},
              {"llama-2-7b", 6'738'415'616,
               R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null, "intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 4096, "tie_word_embeddings": false})"},
              {"llama-2-13b", 13'015'864'320,
               R"({"model_type": "llama", "hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 40, "intermediate_size": 13824, "vocab_size": 32000, "max_position_embeddings": 4096})"},
              {"llama-2-70b", 68'976'648'192,
               R"({"model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 32000, "max_position_embeddings": 4096})"},
              {"llama-3-8b", 8'030'261'248,
               R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192})"},
              {"llama-3-70b", 70'553'706'496,
               R"({"model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128256, "max_position_embeddings": 8192})"},
              {"llama-3.1-405b", 405'853'388'800,
               R"({"model_type": "llama", "hidden_size": 16384, "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8, "intermediate_size": 53248, "vocab_size": 128256, "max_position_embeddings": 131072})"},
              {"llama-3.2-1b", 1'235'814'400,
               R"({"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192, "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": true})"},
              {"llama-3.2-3b", 3'212'749'824,
               R"({"model_type": "llama", "hidden_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192, "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": true})"},
              {"tinyllama-1.1b", 1'100'048'384,
               R"({"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "intermediate_size": 5632, "vocab_size": 32000, "max_position_embeddings": 2048})"},
              {"smollm2-135m", 134'515'008,
               R"({"model_type": "llama", "hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536, "vocab_size": 49152, "max_position_embeddings": 8192, "tie_word_embeddings": true})"},
              {"mistral-7b", 7'241'732'096,
               R"({"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "max_position_embeddings": 32768})"},
              {"phi-3-mini-4k", 3'821'079'552,
               R"({"model_type": "phi3", "hidden_size": 3072, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 8192, "vocab_size": 32064, "max_position_embeddings": 4096})"},
              {"qwen2-0.5b", 494'032'768, R"({"model_type": "qwen2", "hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936, "max_position_embeddings": 131072, "tie_word_embeddings": true})"},
              {"qwen2-1.5b", 1'543'714'304,
               R"({"model_type": "qwen2", "hidden_size": 1536, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "intermediate_size": 8960, "vocab_size": 151936, "max_position_embeddings": 131072, "tie_word_embeddings": true})"},
              {"qwen2-7b", 7'615'616'512,
               R"({"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064, "max_position_embeddings": 131072})"},
              {"gemma-2b", 2'506'172'416,
               R"({"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 16384, "vocab_size": 256000, "max_position_embeddings": 8192})"}};
  return models;
}

TEST(HuggingFaceConfig, CountsTheParametersThatArePublished) {
  for (const Published& known : published()) {
    const auto model = fromText(known.config);
    ASSERT_TRUE(model) << known.name << ": " << model.error().text();
    EXPECT_EQ(parameterCount(*model), known.parameters) << known.name;
  }
}

TEST(HuggingFaceConfig, ReadsTheTextPartOfAModelWithMore) {
  const auto model = fromText(std::string(R"({"model_type": "llava", "vision_config": {"hidden_size": 1024}, "text_config": )") +
                              published()[6].config + "}");
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(parameterCount(*model), 6'738'415'616);
}

TEST(HuggingFaceConfig, SurvivesOurOwnFormat) {
  for (const Published& known : published()) {
    const Model model = *fromText(known.config);
    const Json json = toJson(model);
    JsonContext context{"m.json", {}};
    JsonReader reader(json, context);
    Model again = readModel(reader);
    ASSERT_FALSE(context.error) << context.error->text();
    again.extra = model.extra;
    EXPECT_EQ(again, model) << known.name;
  }
}

TEST(HuggingFaceConfig, RefusesWhatItCannotExpressInWords) {
  const auto refusal = [](const std::string& text) { return fromText(text).error().text(); };
  std::string experts = published()[16].config;
  experts.insert(1, R"("num_local_experts": 8, )");
  EXPECT_THAT(refusal(experts), HasSubstr("mixture of experts"));
  EXPECT_THAT(refusal(R"({"model_type": "qwen2_moe"})"), HasSubstr("mixture of experts"));
  EXPECT_THAT(refusal(R"({"model_type": "bert"})"), HasSubstr("/model_type: is \"bert\""));
  std::string biased = published()[6].config;
  biased.insert(1, R"("attention_bias": true, )");
  EXPECT_THAT(refusal(biased), HasSubstr("attention_bias"));
  EXPECT_THAT(refusal(R"({"model_type": "llama", "hidden_size": 64})"), HasSubstr("num_hidden_layers"));
}

TEST(HuggingFaceConfig, EndsWithAModelOrAnErrorForEveryMutation) {
  std::mt19937 random(5);
  for (int i = 0; i < sweep(3000, 100'000); ++i) {
    Json json = *parseJson(published()[static_cast<std::size_t>(i) % published().size()].config, "own");
    mutate(json, random);
    const auto model = fromConfig(json);
    if (!model) {
      ASSERT_THAT(model.error().where, HasSubstr("config.json"));
      continue;
    }
    ASSERT_GE(model->headDim, 1);
    ASSERT_EQ(model->heads % model->kvHeads, 0);
  }
}

}  // namespace
}  // namespace evenkeel
