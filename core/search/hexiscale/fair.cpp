// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/hexiscale/fair.h"

#include <algorithm>
#include <map>

#include "core/search/hexiscale/partition.h"
#include "core/search/hexiscale/stages.h"
#include "core/search/limits.h"

namespace evenkeel::hexiscale {
namespace {

constexpr int kMostSubParts = 3;
constexpr int kMostTp = 8;
/// Up to here all combinations of sub-parts are priced: 3^5.
constexpr std::size_t kMostCombined = 5;
/// Beyond this many pipelines, pricing the sync again and again costs more than it finds.
constexpr std::size_t kMostImproved = 16;
constexpr int kMostPipelinesInFull = 16;

class FairSearch {
 public:
  FairSearch(SearchSession& session, const FairOptions& options)
      : session_(session), model_(session.model()), options_(options), limits_(limitsOf(session.problem())) {
    const Model& model = session.problem().model;
    setting_.layers = model.layers;
    setting_.hidden = static_cast<double>(model.hidden);
    setting_.sequence = static_cast<double>(session.problem().training.sequenceLength);
    setting_.vocabulary = static_cast<double>(model.vocab);
    setting_.elementBytes = static_cast<double>(bytesOf(session.problem().training.precision));
    setting_.tps.clear();
    for (const int tp : limits_.tps) {
      if (tp <= kMostTp) setting_.tps.push_back(tp);
    }
    std::map<std::pair<int, int>, int> hosts;  // (node, kind) -> index
    for (const DeviceId device : limits_.devices) {
      const int kind = model_.kindOf(device);
      const DeviceType& type = model_.typeOfKind(kind);
      const auto host = hosts.try_emplace({device.node, kind}, static_cast<int>(hosts.size())).first->second;
      setting_.devices.push_back(
          {host, type.speed * type.peak.at(session.problem().training.precision).value, gib(model_.capacityOf(kind))});
    }
    setting_.bandwidth = [this](int a, int b) {
      return model_.link(limits_.devices[static_cast<std::size_t>(a)], limits_.devices[static_cast<std::size_t>(b)])
          .bandwidth.value;
    };
  }

  std::vector<FairPlan> run() {
    for (const int pipelines : pipelineCounts()) {
      if (session_.stopped()) break;
      visit(pipelines);
    }
    std::ranges::stable_sort(found_, {}, [](const FairPlan& plan) { return std::pair(!plan.fitsByItsOwn, plan.estimate); });
    return std::move(found_);
  }

 private:
  /// One way to lay out a pipeline, and its time.
  struct Variant {
    Layout layout;
    double seconds = 0;
    bool fits = false;  // by its own account
    [[nodiscard]] auto rank() const { return std::pair(!fits, seconds); }
  };

  [[nodiscard]] std::vector<int> pipelineCounts() const {
    const int most =
        static_cast<int>(std::min<std::int64_t>(std::ssize(setting_.devices), session_.problem().training.globalBatch));
    if (options_.pipelines) return {std::min(*options_.pipelines, most)};
    std::vector<int> counts;
    for (int p = 1; p <= std::min(most, kMostPipelinesInFull); ++p) counts.push_back(p);
    for (const int p : microBatchChoices(most)) {
      if (p > kMostPipelinesInFull) counts.push_back(p);
    }
    return counts;
  }

  /// Phase 1: slow links stay inside a pipeline, fast ones are cut. Phase 2: the other way round.
  [[nodiscard]] std::vector<std::vector<int>> divide(const std::vector<int>& devices, int parts, bool cutsFastLinks) const {
    std::map<int, std::size_t> classOfHost;
    std::vector<DeviceClass> classes;
    for (const int device : devices) {
      const Setting::Device& one = setting_.devices[static_cast<std::size_t>(device)];
      const auto [entry, isNew] = classOfHost.try_emplace(one.host, classes.size());
      if (isNew) classes.push_back({one.flops, {}});
      classes[entry->second].members.push_back(device);
    }
    const auto edge = [&](std::size_t a, std::size_t b) {
      if (a == b && classes[a].members.size() < 2) return 0.0;
      const double bandwidth =
          setting_.bandwidth(classes[a].members.front(), a == b ? classes[a].members[1] : classes[b].members.front());
      return cutsFastLinks ? 1e9 / bandwidth : bandwidth;
    };
    return partition(classes, parts, edge, [this] { return session_.stopped(); });
  }

  void visit(int count) {
    std::vector<int> everyone(setting_.devices.size());
    for (std::size_t i = 0; i < everyone.size(); ++i) everyone[i] = static_cast<int>(i);
    std::vector<std::vector<std::vector<SubPart>>> subParts;  // by pipeline, choice
    for (const std::vector<int>& devices : divide(everyone, count, true)) {
      subParts.emplace_back();
      for (int k = 1; k <= std::min<int>(kMostSubParts, static_cast<int>(devices.size())); ++k)
        subParts.back().push_back(divide(devices, k, false));
      if (session_.stopped()) return;
    }
    const std::int64_t batch = session_.problem().training.globalBatch;
    const std::int64_t largest = (batch + count - 1) / count;
    std::vector<int> microBatches = microBatchChoices(largest);
    if (options_.microBatch) microBatches = {static_cast<int>(std::min<std::int64_t>(*options_.microBatch, largest))};
    for (const int microBatch : microBatches) {
      if (session_.stopped()) return;
      // Every pipeline has the same number of samples, but for the remainder (mends B1 and its assertion).
      const Batches batches{static_cast<double>(microBatch), (largest + microBatch - 1) / microBatch};
      std::vector<std::vector<Variant>> variants;
      for (const auto& choices : subParts) {
        variants.push_back(variantsOf(choices, batches));
        if (variants.back().empty()) return;  // more stages than layers, however it is divided
        if (session_.stopped()) return;
      }
      keepBest(variants, microBatch);
    }
  }

  [[nodiscard]] std::vector<Variant> variantsOf(const std::vector<std::vector<SubPart>>& choices, Batches batches) const {
    std::vector<Variant> variants;
    for (const std::vector<SubPart>& parts : choices) {
      Variant one;
      for (const std::size_t part : orderOfSubParts(setting_, parts)) {
        const auto stages = stagesOf(setting_, parts[part], batches);
        one.layout.stages.insert(one.layout.stages.end(), stages.begin(), stages.end());
      }
      one.layout.layers = layersForAll(setting_, one.layout.stages);
      if (one.layout.layers.empty()) continue;
      one.fits = fitsByItsOwn(setting_, one.layout, batches.microBatch);
      one.seconds = pipelineSeconds(setting_, one.layout, batches);
      variants.push_back(std::move(one));
    }
    std::ranges::stable_sort(variants, {}, &Variant::rank);
    return variants;
  }

  struct Priced {
    std::vector<std::size_t> chosen;  // variant of each pipeline
    double estimate = 0;
    bool fits = true;
    [[nodiscard]] auto rank() const { return std::pair(!fits, estimate); }
  };

  [[nodiscard]] Priced price(const std::vector<std::vector<Variant>>& variants, std::vector<std::size_t> chosen) const {
    std::vector<Layout> layouts;
    double slowest = 0;
    bool fits = true;
    for (std::size_t p = 0; p < chosen.size(); ++p) {
      const Variant& variant = variants[p][chosen[p]];
      slowest = std::max(slowest, variant.seconds);
      fits = fits && variant.fits;
      layouts.push_back(variant.layout);
    }
    return {std::move(chosen), iterationSeconds(slowest, syncSeconds(setting_, layouts)), fits};
  }

  void keepBest(const std::vector<std::vector<Variant>>& variants, int microBatch) {
    Priced best = price(variants, std::vector<std::size_t>(variants.size(), 0));
    const auto consider = [&](std::vector<std::size_t> chosen) {
      Priced one = price(variants, std::move(chosen));
      if (one.rank() < best.rank()) {
        best = std::move(one);
        return true;
      }
      return false;
    };
    if (variants.size() <= kMostCombined) {
      for (std::vector<std::size_t> chosen(variants.size(), 0); advance(variants, chosen) && !session_.stopped();)
        consider(chosen);
    } else if (variants.size() <= kMostImproved) {
      for (bool better = true; better && !session_.stopped();) {
        better = false;
        for (std::size_t p = 0; p < variants.size(); ++p) {
          for (std::size_t v = 0; v < variants[p].size(); ++v) {
            std::vector<std::size_t> chosen = best.chosen;
            chosen[p] = v;
            better = consider(std::move(chosen)) || better;
          }
        }
      }
    }
    FairPlan plan{{}, best.estimate, best.fits};
    const std::int64_t batch = session_.problem().training.globalBatch, count = std::ssize(variants);
    for (std::int64_t p = 0; p < count; ++p) {
      const std::int64_t local = batch / count + (p < batch % count ? 1 : 0);
      const auto at = static_cast<std::size_t>(p);
      plan.pipelines.push_back(pipelineOf(variants[at][best.chosen[at]].layout, local, microBatch));
    }
    found_.push_back(std::move(plan));
  }

  /// The next combination; false after the last.
  static bool advance(const std::vector<std::vector<Variant>>& variants, std::vector<std::size_t>& chosen) {
    for (std::size_t p = 0; p < chosen.size(); ++p) {
      if (++chosen[p] < variants[p].size()) return true;
      chosen[p] = 0;
    }
    return false;
  }

  /// As a pipeline of ours: everything is recomputed where the runtime can, as the original always does.
  [[nodiscard]] Pipeline pipelineOf(const Layout& layout, std::int64_t localBatch, int microBatch) const {
    const Model& model = session_.problem().model;
    Pipeline pipeline;
    pipeline.localBatch = localBatch;
    pipeline.microBatch = static_cast<int>(std::min<std::int64_t>(microBatch, localBatch));
    int layer = 0;
    for (std::size_t s = 0; s < layout.stages.size(); ++s) {
      Stage stage;
      stage.tp = static_cast<int>(layout.stages[s].size());
      for (const int device : layout.stages[s]) stage.devices.push_back(limits_.devices[static_cast<std::size_t>(device)]);
      stage.units.first = s == 0 ? 0 : 1 + 2 * layer;
      layer += layout.layers[s];
      stage.units.last = s + 1 == layout.stages.size() ? model.unitCount() : 1 + 2 * layer;
      if (limits_.recompute)
        stage.recompute.push_back(
            everythingIn({std::max(1, stage.units.first), std::min(stage.units.last, model.unitCount() - 1)}));
      pipeline.stages.push_back(std::move(stage));
    }
    return pipeline;
  }

  [[nodiscard]] Recompute everythingIn(UnitRange units) const { return {units, opsOfLayer(model_.model())}; }

  SearchSession& session_;
  const CostModel& model_;
  FairOptions options_;
  Limits limits_;
  Setting setting_;
  std::vector<FairPlan> found_;
};

}  // namespace

std::vector<FairPlan> searchFairly(SearchSession& session, const FairOptions& options) {
  return FairSearch(session, options).run();
}

}  // namespace evenkeel::hexiscale
