// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/bench/accuracy/predict_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "core/profile/importers.h"
#include "core/profile/sailor_links.h"
#include "core/profile/table_profile.h"

namespace evenkeel::accuracy {
namespace {

/// Cards of the artifact as their data sheets have them; fp32 is TF32 where the card has it, for that is how they trained.
struct Card {
  std::string_view name;
  double tflops, memoryGib, memoryGbs;
  bool isServer;  // data-centre card: a NIC of its own
};
constexpr std::array<Card, 7> kCards = {{{"A100-40", 156, 40, 1555, true},
                                         {"A100-80", 156, 80, 2039, true},
                                         {"V100-16", 15.7, 16, 900, true},
                                         {"GH-96", 494.7, 95.6, 4000, true},
                                         {"Titan-RTX", 16.3, 24, 672, false},
                                         {"RTX-2080", 13.4, 11, 616, false},
                                         {"RTX-3090", 35.6, 24, 936, false}}};

/// Models of the artifact.
struct KnownModel {
  std::string_view inFiles;  // "OPT-350"; tables may write "OPT-350M"
  Model model;
  std::int64_t sequenceLength = 2048;
};
const std::vector<KnownModel>& knownModels() {
  static const std::vector<KnownModel> models = [] {
    Model opt{
        .name = "OPT-350M", .layers = 24, .hidden = 1024, .heads = 16, .kvHeads = 16, .headDim = 64, .ffn = 4096, .vocab = 50272};
    opt.context = 2048;
    opt.tiedEmbeddings = false;
    Model neo{.name = "GPT-Neo-2.7B",
              .layers = 32,
              .hidden = 2560,
              .heads = 20,
              .kvHeads = 20,
              .headDim = 128,
              .ffn = 10240,
              .vocab = 50257};
    neo.context = 2048;
    Model opt30{.name = "OPT-30B",
                .layers = 48,
                .hidden = 7168,
                .heads = 56,
                .kvHeads = 56,
                .headDim = 128,
                .ffn = 28672,
                .vocab = 50272};
    opt30.context = 2048;
    opt30.tiedEmbeddings = false;
    Model llama = *modelFromArgument("llama3-8b");
    return std::vector<KnownModel>{{"OPT-350", opt}, {"GPT-Neo-2.7", neo}, {"OPT-30", opt30}, {"LLAMA-3-8", llama, 8192}};
  }();
  return models;
}

/// Letters and digits alone, in lower case: "GPT-Neo-2.7B" -> "gptneo27b".
std::string plainName(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

class RunPlan {
 public:
  RunPlan(const MeasuredRun& run, const KnownModel& model, const SailorLinks& links) : run_(run), links_(links) {
    plan_.model = model.model;
    plan_.training.sequenceLength = model.sequenceLength;
    plan_.training.globalBatch = run.globalBatch;
    plan_.training.precision = Precision::Fp32;
    plan_.training.zeroStage = 0;
  }

  Result<Plan> make() {
    plan_.pipelines.resize(static_cast<std::size_t>(run_.dp));
    std::int64_t left = run_.globalBatch;
    for (int replica = 0; replica < run_.dp; ++replica) {
      Pipeline& pipeline = plan_.pipelines[static_cast<std::size_t>(replica)];
      pipeline.localBatch = left / (run_.dp - replica);
      left -= pipeline.localBatch;
      pipeline.microBatch = run_.microBatch;
      const auto cuts = unitCuts();
      if (!cuts) return cuts.error();
      for (std::size_t s = 0; s < run_.stages.size(); ++s) {
        const ReplicaCards& cards = run_.stages[s][static_cast<std::size_t>(replica)];
        auto devices = allot(cards);
        if (!devices) return std::move(devices).error();
        pipeline.stages.push_back({.devices = *std::move(devices), .tp = cards.tp, .units = {(*cuts)[s], (*cuts)[s + 1]}});
      }
    }
    drawLinks();
    return plan_;
  }

 private:
  /// Where the stages are cut, in our units. Aceso cuts between operators (embedding, 13 a layer, norm, head): the nearest unit.
  Result<std::vector<int>> unitCuts() const {
    constexpr int kOpsOfLayer = 13, kOpsOfAttention = 8;
    const int layers = plan_.model.layers, units = plan_.model.unitCount();
    std::vector<int> cuts{0};
    int passed = 0;
    for (std::size_t s = 0; s + 1 < run_.layers.size(); ++s) {
      passed += run_.layers[s];
      if (!run_.isAceso()) {
        cuts.push_back(std::min(2 * passed - 1, units - 1));  // the norm before the head may be a layer of its own
        continue;
      }
      const int layer = (passed - 1) / kOpsOfLayer, inside = (passed - 1) % kOpsOfLayer;
      const int half = inside < kOpsOfAttention / 2 ? 0 : inside <= (kOpsOfAttention + kOpsOfLayer) / 2 ? 1 : 2;
      cuts.push_back(1 + 2 * layer + half);
    }
    cuts.push_back(units);
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
      if (cuts[s] >= cuts[s + 1]) return invalidInput(run_.id, fmt::format("layers_per_stage does not fit {} layers", layers));
    }
    return cuts;
  }

  Result<int> typeOf(const std::string& name) {
    const std::string ours = deviceNameOf(name);
    for (std::size_t i = 0; i < plan_.cluster.deviceTypes.size(); ++i) {
      if (plan_.cluster.deviceTypes[i].name == ours) return static_cast<int>(i);
    }
    const auto card = std::ranges::find(kCards, name, &Card::name);
    if (card == kCards.end()) return invalidInput(run_.id, fmt::format("has card \"{}\", of which nothing is known", name));
    DeviceType type;
    type.name = ours;
    type.vendor = "NVIDIA";
    type.peak[Precision::Fp32] = fromTflops(card->tflops);
    type.memory = fromGib(card->memoryGib);
    type.memoryBandwidth = fromGbs(card->memoryGbs);
    type.nicPerDevice = card->isServer;
    plan_.cluster.deviceTypes.push_back(type);
    cardOf_.push_back(name);
    return static_cast<int>(plan_.cluster.deviceTypes.size()) - 1;
  }

  /// The next free cards of that kind, all in one node.
  Result<std::vector<DeviceId>> allot(const ReplicaCards& cards) {
    const auto type = typeOf(cards.card);
    if (!type) return type.error();
    const int perNode = std::max(cards.tp, run_.cards / run_.nodes);
    auto open = open_.find(*type);
    if (open == open_.end() || perNode - open->second.used < cards.tp) {
      Node node;
      node.name = fmt::format("{}-{}", cards.card, plan_.cluster.nodes.size());
      node.devices.assign(static_cast<std::size_t>(perNode), Device{*type, ""});
      node.intra = links_.inside(cards.card, cards.tp).value_or(LinkSpec{fromGbs(16), {}, {}});
      node.nicPerDevice = links_.hasNicPerCard(cards.card);
      node.nic = links_.between(cards.card, cards.card, node.nicPerDevice ? 1 : cards.tp).value_or(LinkSpec{fromGbs(10), {}, {}});
      plan_.cluster.nodes.push_back(std::move(node));
      pairs_.push_back(cards.tp);
      open = open_.insert_or_assign(*type, OpenNode{static_cast<int>(plan_.cluster.nodes.size()) - 1, 0}).first;
    }
    std::vector<DeviceId> devices;
    for (int i = 0; i < cards.tp; ++i) devices.push_back({open->second.node, open->second.used++});
    return devices;
  }

  /// Between nodes of unlike cards, as they were measured.
  void drawLinks() {
    const auto& nodes = plan_.cluster.nodes;
    for (int a = 0; a < static_cast<int>(nodes.size()); ++a) {
      for (int b = a + 1; b < static_cast<int>(nodes.size()); ++b) {
        const auto typeA = static_cast<std::size_t>(nodes[static_cast<std::size_t>(a)].devices.front().type);
        const auto typeB = static_cast<std::size_t>(nodes[static_cast<std::size_t>(b)].devices.front().type);
        if (typeA == typeB) continue;
        if (const auto spec = links_.between(cardOf_[typeA], cardOf_[typeB], pairs_[static_cast<std::size_t>(a)]))
          plan_.cluster.links.push_back({a, b, *spec});
      }
    }
  }

  struct OpenNode {
    int node = 0, used = 0;
  };
  const MeasuredRun& run_;
  const SailorLinks& links_;
  Plan plan_;
  std::vector<std::string> cardOf_;  // by device type
  std::vector<int> pairs_;           // of each node: cards that send at once
  std::map<int, OpenNode> open_;     // by device type
};

Result<ProfileTable> profileOf(const MeasuredRun& run, const KnownModel& model, const Training& training,
                               const std::filesystem::path& data) {
  const std::filesystem::path profiles = data / "sailor" / "profiles";
  if (run.isAceso()) {
    return importAceso(
        {profiles / "aceso" / "aceso_ops.csv", std::string(model.inFiles), run.stages.front().front().card, "fp32"}, model.model,
        training);
  }
  return importSailor(
      {profiles / "layer" / "profiles_tmp.json", profiles / "layer" / "llm_info.json", std::string(model.inFiles), ""},
      model.model, training);
}

}  // namespace

Result<RunPrediction> predict(const MeasuredRun& run, const std::filesystem::path& data, Times times) {
  const auto model = std::ranges::find_if(
      knownModels(), [&](const KnownModel& known) { return plainName(run.model).starts_with(plainName(known.inFiles)); });
  if (model == knownModels().end())
    return invalidInput(run.id, fmt::format("trains \"{}\", of which nothing is known", run.model));
  const auto links = SailorLinks::load(data / "sailor" / "network", "us-central1-a");
  if (!links) return links.error();
  const auto plan = RunPlan(run, *model, *links).make();
  if (!plan) return plan.error();
  auto table = profileOf(run, *model, plan->training, data);
  if (!table) return std::move(table).error();
  const TableProfile imported(*std::move(table), plan->model, plan->training, "Sailor artifact");
  const AnalyticProfile analytic(plan->model, plan->training, {.dropout = true, .deviceClass = nullptr});
  const Profile& profile = times == Times::Imported ? static_cast<const Profile&>(imported) : analytic;
  const Evaluation evaluation = evaluate(*plan, profile, false, run.isAceso() ? megatronRuntime() : deepSpeedRuntime());
  if (!evaluation.plan.predicted) return invalidInput(run.id, "is no valid plan: " + evaluation.violations.front().what);
  RunPrediction prediction;
  prediction.time = evaluation.plan.predicted->iteration;
  prediction.pipeline = evaluation.plan.predicted->pipeline;
  prediction.sync = evaluation.plan.predicted->sync;
  prediction.optimizer = evaluation.plan.predicted->optimizer;
  for (const auto& [device, bytes] : evaluation.peakBytes) prediction.peak = std::max(prediction.peak, bytes);
  return prediction;
}

}  // namespace evenkeel::accuracy
