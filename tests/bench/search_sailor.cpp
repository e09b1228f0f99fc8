// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/bench/search_sailor.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "core/cost/evaluate.h"
#include "core/cost/stage_time.h"
#include "core/profile/importers.h"
#include "core/profile/sailor_links.h"
#include "core/profile/table_profile.h"
#include "core/search/search.h"

namespace evenkeel {
namespace {

constexpr int kPerNode = 4;
/// Plans of Sailor's shape that are simulated whole: the fastest by the closed form.
constexpr int kMostShapes = 400;

double cpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Workload {
  const char* inFiles;
  Model model;
  std::int64_t batch;
};

std::vector<Workload> workloads() {
  Model opt{
      .name = "OPT-350M", .layers = 24, .hidden = 1024, .heads = 16, .kvHeads = 16, .headDim = 64, .ffn = 4096, .vocab = 50272};
  opt.context = 2048;
  opt.tiedEmbeddings = false;
  Model neo{.name = "GPT-Neo-2.7B", .layers = 32, .hidden = 2560, .heads = 20, .kvHeads = 20, .headDim = 128, .ffn = 10240, .vocab = 50257};
  neo.context = 2048;
  return {{"OPT-350", opt, 1024}, {"GPT-Neo-2.7", neo, 2048}};
}

/// What Sailor calls a card, and how many of them.
struct Cards {
  const char* name;
  int count;
};

/// GH200 with 96 GB, which our catalogue does not have: as its data sheet has it, fp32 as TF32.
constexpr const char* kGraceHopper = "GH-96";
constexpr const char* kInItsPlace = "H100-80-SXM";
void makeGraceHopper(DeviceType& type) {
  type.name = kGraceHopper;
  type.peak[Precision::Fp32] = {494.7e12};
  type.memory = {static_cast<std::int64_t>(95.6 * (1 << 30))};
  type.memoryBandwidth = fromGbs(4000);
}

Cluster clusterOf(const std::vector<Cards>& cards, const SailorLinks& links) {
  std::string text;
  for (const Cards& of : cards) {
    const std::string name = of.name == std::string_view(kGraceHopper) ? kInItsPlace : deviceNameOf(of.name);
    if (of.count > 0) text += fmt::format("{}{}x{}:{}", text.empty() ? "" : ",", of.count / kPerNode, kPerNode, name);
  }
  Cluster cluster = *parseClusterShorthand(text);
  for (DeviceType& type : cluster.deviceTypes) {
    if (type.name == kInItsPlace) makeGraceHopper(type);
  }
  for (Node& node : cluster.nodes) {
    const std::string& type = cluster.deviceTypes[static_cast<std::size_t>(node.devices.front().type)].name;
    const auto card = std::ranges::find_if(cards, [&](const Cards& of) { return deviceNameOf(of.name) == type; });
    if (const auto inside = links.inside(card->name, kPerNode)) node.intra = *inside;
    node.nicPerDevice = links.hasNicPerCard(card->name);
    if (const auto between = links.between(card->name, card->name, node.nicPerDevice ? 1 : kPerNode)) node.nic = *between;
  }
  return cluster;
}

/// The plans that Sailor looks among: D replicas of one pipeline of P stages of equally many layers, each replica's stages on one
/// or the other type, one tp for each type, equally many samples for each. No recomputation.
class SailorShape {
 public:
  explicit SailorShape(const CostModel& model) : model_(model) {
    for (const DeviceId device : model.cluster().devices()) {
      const auto type = static_cast<std::size_t>(model.cluster().typeIndexOf(device));
      if (devices_.size() <= type) devices_.resize(type + 1);
      devices_[type].push_back(device);
    }
  }

  /// The fastest one; nothing: none fits.
  std::optional<Seconds> best() {
    listAll();
    std::ranges::stable_sort(shapes_, {}, &Shape::closedForm);
    std::optional<Seconds> best;
    int simulated = 0;
    for (const Shape& shape : shapes_) {
      if (best && shape.closedForm > 1.5 * best->value) break;
      if (!fitsAlone(shape)) continue;
      if (++simulated > kMostShapes) break;
      for (const bool byStage : {false, true}) {
        const std::vector<Pipeline> plan = placed(shape, byStage);
        if (worstLack(model_, plan)) continue;
        const Seconds time = iterationTime(model_, plan);
        if (!best || time < *best) best = time;
      }
    }
    return best;
  }

 private:
  struct Shape {
    std::array<int, 2> tps{1, 1};  // by type
    int stages = 1, replicas = 1, microBatch = 1;
    int firstTypes = 0;    // stages on the first type, in the replicas that have fewest of them
    int withOneMore = 0;   // replicas with one more
    bool firstInFront = true;
    double closedForm = 0;  // of the slowest replica, sends left out
  };

  [[nodiscard]] int layers() const { return model_.model().layers + 2; }  // as they count: embedding and head are layers
  [[nodiscard]] std::int64_t batch() const { return model_.training().globalBatch; }
  [[nodiscard]] int groups(std::size_t type, int tp) const { return type < devices_.size() ? static_cast<int>(devices_[type].size()) / tp : 0; }
  [[nodiscard]] int kind(std::size_t type) const { return model_.kindOf(devices_[type].front()); }

  /// Units [first, last) of a stage when all layers are dealt out evenly, the larger parts first.
  [[nodiscard]] UnitRange unitsOf(int stage, int stages) const {
    const auto cut = [&](int s) { return s * (layers() / stages) + std::min(s, layers() % stages); };
    const auto unit = [&](int layer) { return layer == 0 ? 0 : layer == layers() ? model_.model().unitCount() : 2 * layer - 1; };
    return {unit(cut(stage)), unit(cut(stage + 1))};
  }

  [[nodiscard]] double timeOf(std::size_t type, int tp, int microBatch, UnitRange units) const {
    const OpCosts& costs = model_.opCosts(kind(type), tp, microBatch);
    double time = 0;
    for (int unit = units.first; unit < units.last; ++unit) {
      const UnitCost cost = unitCost(costs, model_.model().unitKind(unit), {});
      time += (cost.forward + cost.backward).value;
    }
    return time;
  }

  void listAll() {
    const std::vector<int> tps = {1, 2, 4};
    for (const int tpA : tps) {
      for (const int tpB : devices_.size() > 1 ? tps : std::vector<int>{1}) {
        for (int microBatch = 1; microBatch <= std::min<std::int64_t>(64, batch()); microBatch *= 2) {
          for (int stages = 1; stages <= layers(); ++stages) list({tpA, tpB}, microBatch, stages);
        }
      }
    }
  }

  void list(std::array<int, 2> tps, int microBatch, int stages) {
    std::array<std::vector<double>, 2> times;
    for (std::size_t type = 0; type < devices_.size(); ++type) {
      for (int s = 0; s < stages; ++s) times[type].push_back(timeOf(type, tps[type], microBatch, unitsOf(s, stages)));
    }
    const int mostFirst = groups(0, tps[0]), mostSecond = groups(1, tps[1]);
    for (int replicas = 1; replicas <= (mostFirst + mostSecond) / stages && replicas <= batch(); ++replicas) {
      const int all = replicas * stages;
      // As many stages on the faster type as it has room for; the slower one is the second.
      const int first = std::min(all, mostFirst);
      if (all - first > mostSecond) continue;
      const std::int64_t each = (batch() + replicas - 1) / replicas;
      const std::int64_t count = (each + microBatch - 1) / microBatch;
      for (const bool inFront : {true, false}) {
        Shape shape{tps, stages, replicas, microBatch, first / replicas, first % replicas, inFront};
        double fill = 0, pace = 0;
        for (int s = 0; s < stages; ++s) {
          const double time = times[typeOf(shape, shape.firstTypes, s)][static_cast<std::size_t>(s)];
          fill += time;
          pace = std::max(pace, time);
        }
        shape.closedForm = fill + static_cast<double>(count - 1) * pace;
        shapes_.push_back(shape);
      }
    }
  }

  /// Which type stage s is on, of a replica with so many on the first type.
  static std::size_t typeOf(const Shape& shape, int firstTypes, int s) {
    const bool isFirst = shape.firstInFront ? s < firstTypes : s >= shape.stages - firstTypes;
    return isFirst ? 0 : 1;
  }

  [[nodiscard]] Pipeline replica(const Shape& shape, int index) const {
    const bool hasOneMore = index >= shape.replicas - shape.withOneMore;
    Pipeline pipeline;
    pipeline.localBatch = batch() / shape.replicas + (index < batch() % shape.replicas ? 1 : 0);
    pipeline.microBatch = static_cast<int>(std::min<std::int64_t>(shape.microBatch, pipeline.localBatch));
    for (int s = 0; s < shape.stages; ++s) {
      const std::size_t type = typeOf(shape, shape.firstTypes + (hasOneMore ? 1 : 0), s);
      Stage& stage = pipeline.stages.emplace_back();
      stage.tp = shape.tps[type];
      stage.units = unitsOf(s, shape.stages);
      stage.devices.assign(static_cast<std::size_t>(stage.tp), devices_[type].front());  // one of its type
    }
    return pipeline;
  }

  /// Without ZeRO the memory of a replica does not depend on the others.
  [[nodiscard]] bool fitsAlone(const Shape& shape) const {
    const std::vector<Pipeline> slowest = {replica(shape, 0)};
    return !worstLack(model_, slowest);
  }

  [[nodiscard]] std::vector<Pipeline> placed(const Shape& shape, bool byStage) const {
    std::vector<Pipeline> plan;
    for (int r = 0; r < shape.replicas; ++r) plan.push_back(replica(shape, r));
    std::array<std::size_t, 2> used{};
    const auto place = [&](Stage& stage) {
      const auto type = static_cast<std::size_t>(model_.cluster().typeIndexOf(stage.devices.front()));
      for (DeviceId& device : stage.devices) device = devices_[type][used[type]++];
    };
    const auto replicas = static_cast<std::size_t>(shape.replicas), stages = static_cast<std::size_t>(shape.stages);
    for (std::size_t i = 0; i < replicas * stages; ++i) {
      if (byStage) place(plan[i % replicas].stages[i / replicas]);
      else place(plan[i / stages].stages[i % stages]);
    }
    return plan;
  }

  const CostModel& model_;
  std::vector<std::vector<DeviceId>> devices_;  // by type, the faster one first
  std::vector<Shape> shapes_;
};

struct FirstBelow final : SearchObserver {
  double begin = cpuSeconds(), limit = 0, at = 0, within = 0;
  std::vector<std::pair<double, double>> found;  // (CPU seconds, iteration seconds)
  void onIncumbent(const Incumbent& incumbent) override {
    const double time = incumbent.plan.predicted->iteration.value;
    found.emplace_back(cpuSeconds() - begin, time);
    if (at == 0 && time < limit) at = cpuSeconds() - begin;
  }
};

}  // namespace

void compareSailor(const std::filesystem::path& data, bool fewer) {
  const auto links = SailorLinks::load(data / "sailor" / "network", "us-central1-a");
  if (!links) {
    fmt::print("{}\n", links.error().text());
    return;
  }
  struct Case {
    int a100s, v100s, ghs;
    double recorded;  // CPU seconds of Sailor, OPT; 0: none
  };
  std::vector<Case> cases = {{8, 8, 0, 0}, {64, 64, 0, 0.59}};
  if (!fewer) cases.insert(cases.end(), {{128, 128, 0, 1.24}, {128, 384, 0, 4.3}, {64, 64, 64, 370}});
  for (const Workload& work : workloads()) {
    for (const Case& c : cases) {
      Problem problem{clusterOf({{"GH-96", c.ghs}, {"A100-40", c.a100s}, {"V100-16", c.v100s}}, *links), work.model, {}};
      problem.training = resolveTraining({.sequenceLength = 2048, .globalBatch = work.batch, .precision = Precision::Fp32, .zeroStage = 0},
                                         problem.cluster, problem.model);
      const std::filesystem::path profiles = data / "sailor" / "profiles" / "layer";
      auto table = importSailor({profiles / "profiles_tmp.json", profiles / "llm_info.json", work.inFiles, ""}, problem.model, problem.training);
      if (!table) {
        fmt::print("{}\n", table.error().text());
        return;
      }
      const TableProfile profile(*std::move(table), problem.model, problem.training, "Sailor artifact");
      const auto planOn = [&](const Problem& of, SearchObserver& observer) {
        return (*plannerNamed("optimal"))->plan({of, &profile, {.threads = 1}, {}}, observer, {});
      };
      fmt::print("{}, {} + {} + {} A100-40, V100-16, GH-96:\n", work.model.name, c.a100s, c.v100s, c.ghs);
      std::optional<Seconds> shaped;
      if (c.ghs == 0) {
        const CostModel model(problem.cluster, problem.model, problem.training, profile);
        shaped = SailorShape(model).best();
      }
      FirstBelow watch;
      watch.limit = shaped ? shaped->value : 1e9;
      const auto plan = planOn(problem, watch);
      const double all = cpuSeconds() - watch.begin;
      if (!plan) {
        fmt::print("  {}\n", plan.error().text());
        continue;
      }
      const double ours = plan->predicted->iteration.value;
      for (const auto& [at, time] : watch.found) {
        if (watch.within == 0 && time <= 1.01 * ours) watch.within = at;
      }
      fmt::print("  optimal {:.4f} s (closed-form gap {:.2f} %, reported gap {:.1f} %)\n", ours,
                 100 * plan->search.value("closed_form_gap", 1.0), 100 * plan->predicted->gap());
      if (shaped)
        fmt::print("  Sailor's shape {:.4f} s: optimal is {:.3f} times as fast\n", shaped->value, shaped->value / ours);
      fmt::print("  CPU time: first plan {:.3f} s, faster than Sailor's shape {:.3f} s, within 1 % of the end {:.3f} s, all {:.2f} s",
                 watch.found.front().first, watch.at, watch.within, all);
      if (c.recorded > 0 && std::string_view(work.inFiles) == "OPT-350") fmt::print("; Sailor recorded {} s", c.recorded);
      fmt::print("\n");
      if (c.ghs > 0) continue;
      Problem alone = problem;
      alone.cluster = clusterOf({{"A100-40", c.a100s}}, *links);
      SearchObserver nobody;
      const auto few = planOn(alone, nobody);
      if (few) fmt::print("  A100s alone {:.4f} s: {:.3f} times as long\n", few->predicted->iteration.value, few->predicted->iteration.value / ours);
    }
  }
}

}  // namespace evenkeel
