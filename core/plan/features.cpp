// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/base/words.h"

namespace evenkeel {
namespace {

constexpr std::string_view kNvidia = "nvidia";
constexpr std::array<std::pair<std::string_view, Family>, 2> kFamilies = {{{"gpt", Family::Gpt}, {"llama", Family::Llama}}};

template <class List, class Value>
bool has(const List& list, Value value) {
  return std::ranges::find(list, value) != list.end();
}

template <class Table, class Value>
Json words(const Table& table, const std::vector<Value>& values) {
  Json json = Json::array();
  for (const Value value : values) json.push_back(wordOf(table, value));
  return json;
}

/// Words that we do not know are features that we cannot use: skipped, so that an old client can talk to a newer worker.
template <class Table, class Value>
void readWords(JsonReader& reader, std::string_view key, const Table& table, std::vector<Value>& values) {
  for (const std::string& word : reader.texts(key)) {
    for (const auto& [known, value] : table) {
      if (known == word) values.push_back(value);
    }
  }
}

}  // namespace

const RuntimeFeatures& ownRuntime() {
  static const RuntimeFeatures features{.maxTp = kMaxDevices,
                                        .maxDp = kMaxDevices,
                                        .recompute = true,
                                        .zeroStages = {0, 1, 2},
                                        .gradientSyncs = {GradientSync::Block, GradientSync::Tensor, GradientSync::Device},
                                        .attentionKernels = {AttentionKernel::Unfused},
                                        .precisions = {Precision::Fp32, Precision::Bf16, Precision::Fp16},
                                        .families = {Family::Gpt, Family::Llama}};
  return features;
}

RuntimeFeatures ownRuntime(bool cuda) {
  RuntimeFeatures features = ownRuntime();
  features.cuda = cuda;
  return features;
}

bool isCard(const DeviceType& type) { return type.name != "cpu" && !type.name.starts_with("cpu@"); }

Json toJson(const RuntimeFeatures& features) {
  Json json;
  json["format"] = "evenkeel.features/1";
  json["max_tp"] = features.maxTp;
  json["max_dp"] = features.maxDp;
  json["recompute"] = features.recompute;
  json["zero_stages"] = features.zeroStages;
  json["gradient_sync"] = words(gradientSyncWords(), features.gradientSyncs);
  json["attention"] = words(attentionWords(), features.attentionKernels);
  json["precisions"] = words(precisionWords(), features.precisions);
  json["families"] = words(kFamilies, features.families);
  json["cuda"] = features.cuda;
  return json;
}

Result<RuntimeFeatures> parseFeatures(const Json& json, const std::string& source) {
  JsonContext context{source, {}};
  JsonReader reader(json, context);
  RuntimeFeatures features;
  expectFormat(reader, "evenkeel.features/1");
  features.maxTp = static_cast<int>(reader.integer("max_tp", {1, kMaxDevices}));
  features.maxDp = static_cast<int>(reader.integer("max_dp", {1, kMaxDevices}));
  features.recompute = reader.boolean("recompute", false);
  for (const auto stage : reader.integers("zero_stages", {0, 3})) features.zeroStages.push_back(static_cast<int>(stage));
  readWords(reader, "gradient_sync", gradientSyncWords(), features.gradientSyncs);
  readWords(reader, "attention", attentionWords(), features.attentionKernels);
  readWords(reader, "precisions", precisionWords(), features.precisions);
  readWords(reader, "families", kFamilies, features.families);
  features.cuda = reader.boolean("cuda", false);
  if (context.error) return *std::move(context.error);
  return features;
}

bool runsHere(const Cluster& cluster) {
  return std::ranges::all_of(cluster.devices(), [&](DeviceId device) { return cluster.typeOf(device).runsHere; });
}

std::vector<Violation> notLaunchable(const Plan& plan, const RuntimeFeatures& features) {
  std::vector<Violation> reasons;
  const auto add = [&](std::string where, std::string what, std::string remedy) {
    reasons.push_back({std::move(where), std::move(what), std::move(remedy)});
  };
  std::set<std::string> planOnly, withoutWorker;
  for (const DeviceId device : plan.usedDevices()) {
    const DeviceType& type = plan.cluster.typeOf(device);
    if (type.runsHere) continue;
    if (lowerCase(type.vendor) != kNvidia) planOnly.insert(type.name);
    else if (!features.cuda) withoutWorker.insert(type.name);
  }
  for (const std::string& type : planOnly)
    add("cluster", type + " is plan only: the runtime cannot train on it", "use devices that run here (cpu), or cards of NVIDIA");
  for (const std::string& type : withoutWorker)
    add("cluster", type + " is plan only: this worker was built without CUDA",
        "build one for the PyTorch of the node: ./run.sh --cuda DIRECTORY, or use devices that run here (cpu)");

  const Training& training = plan.training;
  if (plan.model.opaque)
    add("model", plan.model.name + " is a table of layers: it can be planned, not trained", "give the model itself");
  if (!has(features.families, plan.model.family())) {
    add("model",
        fmt::format("{} is of the {} family, which the runtime cannot train yet", plan.model.name,
                    wordOf(kFamilies, plan.model.family())),
        "use a GPT model, for example tiny-gpt");
  }
  if (!has(features.precisions, training.precision)) {
    add("training", fmt::format("the runtime cannot train in {} yet", name(training.precision)), "plan with --precision fp32");
  }
  if (!has(features.zeroStages, training.zeroStage)) {
    add("training", fmt::format("the runtime has no ZeRO-{} yet", training.zeroStage), "plan with --zero 0");
  }
  if (!has(features.gradientSyncs, training.gradientSync)) {
    add("training", fmt::format("the runtime has no {}-wise gradient sync yet", name(training.gradientSync)),
        "plan with block-wise sync");
  }
  if (training.gradientSync == GradientSync::Device && training.zeroStage > 0) {
    add("training", "device-wise gradient sync leaves nobody a part of his own to update, which ZeRO needs",
        "plan with --zero 0");
  }
  if (!has(features.attentionKernels, training.attention)) {
    add("training", fmt::format("the runtime has no {} attention kernel yet", name(training.attention)),
        "plan with the unfused kernel");
  }
  if (training.sequenceParallel) {
    add("training", "the runtime has no sequence parallelism yet", "plan without sequence_parallel");
  }
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (std::size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const Stage& stage = plan.pipelines[p].stages[s];
      if (stage.tp > features.maxTp)
        add(placeOf(p, s), fmt::format("tp {}: the runtime executes at most tp {}", stage.tp, features.maxTp), "plan again");
      if (stage.dp > features.maxDp)
        add(placeOf(p, s), fmt::format("dp {}: the runtime executes at most dp {} inside a stage", stage.dp, features.maxDp),
            "write the replicas as pipelines");
      if (!stage.recompute.empty() && !features.recompute)
        add(placeOf(p, s), "recomputes ops, which the runtime cannot do yet", "plan again");
    }
  }
  return reasons;
}

}  // namespace evenkeel
