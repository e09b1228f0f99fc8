// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/training.h"

#include <array>

#include "core/base/words.h"

namespace evenkeel {
namespace {

constexpr std::array<std::pair<std::string_view, GradientSync>, 3> kSyncs = {
    {{"block", GradientSync::Block}, {"tensor", GradientSync::Tensor}, {"device", GradientSync::Device}}};
constexpr std::array<std::pair<std::string_view, AttentionKernel>, 2> kKernels = {
    {{"unfused", AttentionKernel::Unfused}, {"fused", AttentionKernel::Fused}}};

}  // namespace

std::span<const std::pair<std::string_view, GradientSync>> gradientSyncWords() { return kSyncs; }
std::span<const std::pair<std::string_view, AttentionKernel>> attentionWords() { return kKernels; }
std::string_view name(GradientSync sync) { return wordOf(kSyncs, sync); }
std::string_view name(AttentionKernel kernel) { return wordOf(kKernels, kernel); }

Training readTraining(JsonReader& reader) {
  Training training;
  training.sequenceLength = reader.integer("sequence_length", {1, kMaxSequence});
  training.globalBatch = reader.integer("global_batch", {1, kMaxGlobalBatch});
  training.precision = reader.oneOf<Precision>("precision", precisionWords());
  const std::string optimizer = reader.text("optimizer", "adamw");
  if (optimizer != "adamw") reader.fail("optimizer", "is \"" + optimizer + "\"", "expected adamw");
  training.zeroStage = static_cast<int>(reader.integer("zero_stage", {0, 2}, 0));
  training.gradientSync = reader.oneOf<GradientSync>("gradient_sync", kSyncs, GradientSync::Block);
  training.attention = reader.oneOf<AttentionKernel>("attention", kKernels, AttentionKernel::Unfused);
  training.sequenceParallel = reader.boolean("sequence_parallel", false);
  training.extra = reader.rest();
  return training;
}

Json toJson(const Training& training) {
  Json json;
  json["sequence_length"] = training.sequenceLength;
  json["global_batch"] = training.globalBatch;
  json["precision"] = name(training.precision);
  json["optimizer"] = "adamw";
  json["zero_stage"] = training.zeroStage;
  json["gradient_sync"] = name(training.gradientSync);
  json["attention"] = name(training.attention);
  if (training.sequenceParallel) json["sequence_parallel"] = true;
  addUnknownFields(json, training.extra);
  return json;
}

}  // namespace evenkeel
