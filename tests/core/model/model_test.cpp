// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

Result<Model> fromText(const std::string& text) {
  auto json = parseJson(text, "m.json");
  if (!json) return std::move(json).error();
  JsonContext context{"m.json", {}};
  JsonReader reader(*json, context);
  Model model = readModel(reader);
  if (context.error) return *context.error;
  return model;
}

// Published counts: Llama 2 and Llama 3 model cards' tensors (6,738,415,616; 13,015,864,320; 68,976,648,192; 8,030,261,248).
TEST(ParameterCount, EqualsThePublishedCounts) {
  const std::map<std::string, std::int64_t> published = {
      {"llama2-7b", 6'738'415'616}, {"llama2-13b", 13'015'864'320}, {"llama2-70b", 68'976'648'192}, {"llama3-8b", 8'030'261'248}};
  for (const auto& [name, count] : published) EXPECT_EQ(parameterCount(*modelFromArgument(name)), count) << name;
}

// GPT-2 small (Radford et al. 2019), 124,439,808 with tied embeddings; typed from its published hyper-parameters.
TEST(ParameterCount, CountsNormsBiasesAndTiedEmbeddings) {
  const auto gpt2 = fromText(R"({"format": "evenkeel.model/1", "name": "gpt2", "layers": 12, "hidden": 768, "heads": 12, "vocab": 50257, "context": 1024})");
  ASSERT_TRUE(gpt2) << gpt2.error().text();
  EXPECT_EQ(parameterCount(*gpt2), 124'439'808);
}

TEST(ParameterCount, OfTheGpt3PresetsIsNearTheirNames) {
  const std::map<std::string, double> billions = {{"gpt3-350m", 0.35}, {"gpt3-1.3b", 1.3}, {"gpt3-2.7b", 2.7}, {"gpt3-6.7b", 6.7},
                                                  {"gpt3-13b", 13}, {"gpt3-30b", 30}, {"gpt3-66b", 66}, {"gpt3-175b", 175}};
  for (const auto& [name, count] : billions) {
    EXPECT_NEAR(static_cast<double>(parameterCount(*modelFromArgument(name))) / 1e9, count, 0.03 * count) << name;
  }
}

TEST(StoredParameters, AddUpOverAnyCut) {
  for (const char* name : {"tiny-gpt", "tiny-llama"}) {
    const Model model = *modelFromArgument(name);
    const std::int64_t whole = storedParameters(model, 0, model.unitCount());
    const std::int64_t shared = model.tiedEmbeddings ? model.paddedVocab() * model.hidden : 0;
    for (int cut = 1; cut < model.unitCount(); ++cut) {
      EXPECT_EQ(storedParameters(model, 0, cut) + storedParameters(model, cut, model.unitCount()), whole + shared) << name << cut;
    }
  }
}

TEST(ModelUnits, AreEmbeddingThenTwoALayerThenHead) {
  const Model model = *modelFromArgument("tiny-gpt");
  EXPECT_EQ(model.unitCount(), 18);
  EXPECT_EQ(model.unitKind(0), UnitKind::Embedding);
  EXPECT_EQ(model.unitKind(1), UnitKind::Attention);
  EXPECT_EQ(model.unitKind(16), UnitKind::Mlp);
  EXPECT_EQ(model.unitKind(17), UnitKind::Head);
  EXPECT_EQ(model.layerOfUnit(16), 7);
}

TEST(ModelFile, RoundTripsAndKeepsUnknownFields) {
  const auto model = fromText(R"({"format": "evenkeel.model/1", "name": "m", "layers": 2, "hidden": 64, "heads": 4, "vocab": 100, "context": 32, "author": "me"})");
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->ffn, 256);
  EXPECT_EQ(model->paddedVocab(), 128);
  const auto again = fromText(toJson(*model).dump());
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *model);
  EXPECT_EQ(toJson(*model)["author"], "me");
}

TEST(ModelFile, NamesTheFieldThatIsWrong) {
  const std::string head = R"({"format": "evenkeel.model/1", "name": "m", "vocab": 100, "context": 32, )";
  EXPECT_THAT(fromText(head + R"("layers": 0, "hidden": 64, "heads": 4})").error().text(), HasSubstr("/layers: is 0"));
  EXPECT_THAT(fromText(head + R"("layers": 2, "hidden": 65, "heads": 4})").error().text(), HasSubstr("/hidden: is 65, no multiple of 4 heads"));
  EXPECT_THAT(fromText(head + R"("layers": 2, "hidden": 64, "heads": 4, "kv_heads": 3})").error().text(), HasSubstr("/kv_heads"));
  EXPECT_THAT(fromText(head + R"("layers": 2, "hidden": 64, "heads": 4, "norm": "batch"})").error().text(), HasSubstr("expected one of: layernorm, rmsnorm"));
}

const std::string kTable =
    R"({"format": "evenkeel.model/1", "name": "m", "layers": 3, "hidden": 64, "context": 32, "opaque": {"first": {"parameters": 10, "forward_gflop": 0},)";

TEST(ModelFile, MayBeATableOfLayers) {
  const auto model = fromText(kTable + R"("layer": {"name": "block", "parameters": 1000, "saved_bytes": 4096, "transient_bytes": 64,
      "times_ms": {"V100-16-SXM2": [1.5, 3]}}, "last": {"parameters": 7, "forward_gflop": 2}}})");
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(parameterCount(*model), 10 + 3 * 1000 + 7);
  EXPECT_EQ(model->opaque->inner.times.at("V100-16-SXM2").backward, Seconds{0.003});
  EXPECT_EQ(model->opaque->last.forward, Flops{2e9});
  const auto again = fromText(toJson(*model).dump());
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *model);
}

TEST(ModelFile, NamesWhatATableOfLayersLacks) {
  EXPECT_THAT(fromText(kTable + R"("layer": {}, "last": {}}})").error().text(),
              HasSubstr("/opaque/layer: has neither times nor FLOPs"));
  EXPECT_THAT(fromText(kTable + R"("layer": {"forward_gflop": 1}, "last": {}}})").error().text(),
              HasSubstr("/opaque/last: has neither times nor FLOPs"));
  EXPECT_THAT(fromText(kTable + R"("layer": {"times_ms": {"T4": [0, 0]}}, "last": {"forward_gflop": 0}}})").error().text(),
              HasSubstr("/opaque/layer: costs nothing"));
  EXPECT_THAT(fromText(kTable + R"("layer": {"times_ms": {"T4": [1]}}, "last": {}}})").error().text(),
              HasSubstr("/opaque/layer/times_ms/T4: is no time; expected [forward, backward]"));
  EXPECT_THAT(fromText(kTable + R"("layer": {"forward_gflop": 1}}})").error().text(), HasSubstr("/opaque/last"));
}

TEST(ModelFile, RefusesASlipOfZerosBeforeItsCountsOverflow) {
  const auto model = fromText(R"({"format": "evenkeel.model/1", "name": "m", "vocab": 100, "context": 32, "layers": 4096, "hidden": 16777216, "heads": 4, "ffn": 16777216})");
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().text(), HasSubstr("parameters"));
}

TEST(ModelFromArgument, NamesTheKnownModelsForAnUnknownOne) {
  EXPECT_THAT(modelFromArgument("gpt5").error().text(), HasSubstr("gpt3-175b"));
  EXPECT_THAT(modelFromArgument("/nonexistent/config.json").error().text(), HasSubstr("no such file"));
}

}  // namespace
}  // namespace evenkeel
