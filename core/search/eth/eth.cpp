// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/eth/eth.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

#include "core/search/eth/balance.h"
#include "core/search/eth/eth_options.h"
#include "core/search/eth/grouping.h"
#include "core/search/eth/placement.h"
#include "core/search/eth/polish.h"
#include "core/search/eth/skipping.h"
#include "core/search/eth/stage_search.h"
#include "core/search/eth/variance.h"
#include "core/search/remedy.h"
#include "core/search/session.h"
#include "core/search/tp_groups.h"
#include "core/search/uniform/uniform.h"

namespace evenkeel {
namespace {

/// Groupings that are refined and simulated: the best by the estimate.
constexpr std::size_t kRefined = 32;
/// And the best few of each number of pipelines: the estimate knows links and sync only on average, which favours all groupings of
/// a number of pipelines alike.
constexpr std::size_t kRefinedOfCount = 3, kRefinedOfAllCounts = 40;
/// Estimates further behind the best than this are not worth it.
constexpr double kEstimateSlack = 1.25;

/// What a pipeline's best configuration depends on (step 4). `pipelines` is rounded down to a power of two: with fewer holders
/// ZeRO shards less, so what fits then fits.
struct CacheKey {
  Composition composition;
  std::int64_t localBatch = 1;
  int pipelines = 1;
  auto operator<=>(const CacheKey&) const = default;
};

/// Groupings that see the same incumbent and the same known groups: skipping must not depend on the number of threads.
constexpr std::size_t kBatch = 32;

/// Steps 1 to 7 for one rule of recomputation.
class EthSearch {
 public:
  EthSearch(SearchSession& session, const EthOptions& options, const Recomputing& recomputing)
      : session_(session),
        problem_(session.problem()),
        options_(options),
        limits_(session.limits()),
        stages_(session.model(), limits_, recomputing, [&session] { return session.stopped(); }),
        bounds_(capacitiesOf(session.model(), stages_.types())),
        mostPipelines_(static_cast<int>(std::min<std::int64_t>(options.mostPipelines, problem_.training.globalBatch))) {
    std::vector<int> asTheyStand(problem_.cluster.nodes.size());
    std::iota(asTheyStand.begin(), asTheyStand.end(), 0);
    fillingOrders_ = fillingOrders(problem_.cluster, std::move(asTheyStand));
    Composition all;
    for (const TypeFigures& type : stages_.types()) {
      all.push_back(type.count);
      Composition one(stages_.types().size(), 0);
      one[flops_.size()] = 1;
      flops_.push_back(stages_.power(one));
    }
    power_ = stages_.power(all);
  }

  [[nodiscard]] std::vector<Grouping> candidates() const {
    std::vector<Grouping> all = groupings(stages_.types(), mostPipelines_);
    keepAllowed(all);
    if (options_.ordered) orderByVariance(all, flops_, problem_.model.unitCount());
    return all;
  }

  void keepAllowed(std::vector<Grouping>& all) const {
    const std::optional<int> asked = session_.constraints().pipelines;
    if (asked) std::erase_if(all, [&](const Grouping& grouping) { return static_cast<int>(grouping.size()) != *asked; });
  }

  /// Steps 3 a and b for each grouping that is not skipped; the best ones are kept.
  void balance(const std::vector<Grouping>& all) {
    for (std::size_t begin = 0; begin < all.size() && !session_.stopped(); begin += kBatch) {
      std::vector<const Grouping*> batch;
      for (std::size_t i = begin; i < std::min(begin + kBatch, all.size()); ++i) batch.push_back(&all[i]);
      if (options_.skip) skip(batch);
      std::vector<std::optional<Balanced>> estimates(batch.size());
      if (options_.cache) {
        fillCache(batch);
        session_.parallel(batch.size(), [&](std::size_t i) { estimates[i] = balanced(*batch[i], cachedChoices(*batch[i])); });
      } else {
        session_.parallel(batch.size(), [&](std::size_t i) { estimates[i] = balanced(*batch[i], newChoices(*batch[i])); });
      }
      if (session_.stopped()) return;
      keep(batch, std::move(estimates));
    }
  }

  /// Step 7, and its groupings like the others.
  void balanceContiguous() {
    if (options_.dynamicProgramming) balance(contiguous());
  }

  /// Step 3 c for the best, then all under the reported number.
  void refine() {
    while (!best_.empty() && best_.back().time > kEstimateSlack * best_.front().time) best_.pop_back();
    addOtherCounts();
    considerPlaced(best_, "eth: balanced batches");
    std::vector<Balanced> refinedOnes(2 * best_.size());
    session_.parallel(refinedOnes.size(), [&](std::size_t i) { refinedOnes[i] = refined(best_[i / 2], i % 2 == 1); });
    considerPlaced(refinedOnes, "eth: refined stages");
  }

 private:
  /// One choice for each pipeline of a grouping; none where nothing fits: these devices stay idle.
  using Choices = std::vector<std::optional<PipelineChoice>>;

  /// A grouping whose pipelines all have a configuration, with the batches that balance them.
  struct Balanced {
    std::vector<PipelineChoice> choices;
    std::vector<Composition> compositions;
    std::vector<std::int64_t> batches;
    Seconds time;  // of the slowest pipeline, and of the sync, about
  };

  /// Step 3 a would start from the global batch; its share by compute is nearer to what step 3 b gives.
  CacheKey keyOf(const Composition& composition, int pipelines) const {
    const double share = static_cast<double>(problem_.training.globalBatch) * stages_.power(composition) / power_;
    const auto batch = std::clamp<std::int64_t>(std::llround(share), 1, problem_.training.globalBatch);
    // Without sharded state the number of pipelines changes nothing.
    return {composition, batch,
            problem_.training.zeroStage > 0 ? static_cast<int>(std::bit_floor(static_cast<unsigned>(pipelines))) : 1};
  }

  static double throughputOf(const CacheKey& key, const std::optional<PipelineChoice>& choice) {
    if (!choice) return 0;
    const Seconds time = choice->time((key.localBatch + choice->microBatch - 1) / choice->microBatch);
    return static_cast<double>(key.localBatch) / time.value;
  }

  /// Step 5: drops the groupings that cannot be faster than the best so far.
  void skip(std::vector<const Grouping*>& batch) {
    if (best_.empty()) return;
    const double incumbent = static_cast<double>(problem_.training.globalBatch) / best_.front().time.value;
    std::vector<const Grouping*> kept;
    for (const Grouping* grouping : batch) {
      double dominated = 0, scaled = 0;
      for (const Composition& composition : *grouping) {
        const ThroughputBounds::Bounds& bounds = bounds_.of(composition);
        dominated += bounds.byDominance;
        scaled += bounds.byScaling;
      }
      // Equal pipelines are few, and what estimates of unlike groups say of them is often too little.
      if (grouping->front() == grouping->back()) kept.push_back(grouping);
      else if (dominated < incumbent) session_.countPruned("skipped: dominated by slower groups", 1);
      else if (options_.alpha * scaled < incumbent) session_.countPruned("skipped: too little compute and memory", 1);
      else kept.push_back(grouping);
    }
    batch = std::move(kept);
  }

  /// Step 4.
  void fillCache(std::span<const Grouping* const> all) {
    std::vector<CacheKey> missing;
    for (const Grouping* grouping : all) {
      for (std::size_t i = 0; i < grouping->size(); ++i) {
        const Composition& composition = (*grouping)[i];
        if (i > 0 && composition == (*grouping)[i - 1]) {
          session_.countCached(1);
          continue;
        }
        CacheKey key = keyOf(composition, static_cast<int>(grouping->size()));
        if (cache_.emplace(key, std::nullopt).second) missing.push_back(std::move(key));
        else session_.countCached(1);
      }
    }
    Choices found(missing.size());
    session_.parallel(missing.size(), [&](std::size_t i) {
      found[i] = stages_.best(missing[i].composition, missing[i].localBatch, missing[i].pipelines, Care::Estimate);
    });
    if (session_.stopped()) return;  // an interrupted search says nothing of a group
    for (std::size_t i = 0; i < missing.size(); ++i) {
      bounds_.learn(missing[i].composition, throughputOf(missing[i], found[i]));
      cache_[missing[i]] = std::move(found[i]);
    }
  }

  Choices cachedChoices(const Grouping& grouping) const {
    Choices choices;
    for (const Composition& composition : grouping) {
      const auto found = cache_.find(keyOf(composition, static_cast<int>(grouping.size())));
      choices.push_back(found == cache_.end() ? std::nullopt : found->second);
    }
    return choices;
  }

  Choices newChoices(const Grouping& grouping) {
    Choices choices;
    for (const Composition& composition : grouping) {
      const CacheKey key = keyOf(composition, static_cast<int>(grouping.size()));
      choices.push_back(stages_.best(composition, key.localBatch, key.pipelines, Care::Estimate));
    }
    return choices;
  }

  /// Of what was balanced, the best by the estimate stay.
  void keep(std::span<const Grouping* const> batch, std::vector<std::optional<Balanced>> estimates) {
    const auto samples = static_cast<double>(problem_.training.globalBatch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Spread spread = spreadOf(*batch[i], flops_);
      session_.point({.pipelines = static_cast<int>(batch[i]->size()),
                      .interVariance = spread.inter,
                      .intraVariance = spread.intra,
                      .samplesPerSecond = estimates[i] ? samples / estimates[i]->time.value : 0});
      if (!estimates[i]) continue;
      if (!options_.cache) {
        for (std::size_t p = 0; p < estimates[i]->choices.size(); ++p) {
          const CacheKey key = keyOf(estimates[i]->compositions[p], static_cast<int>(batch[i]->size()));
          bounds_.learn(key.composition, throughputOf(key, estimates[i]->choices[p]));
        }
      }
      std::vector<Balanced>& ofCount = bestOfCount_[estimates[i]->choices.size()];
      if (ofCount.size() < kRefinedOfCount || estimates[i]->time < ofCount.back().time) {
        ofCount.insert(std::ranges::upper_bound(ofCount, estimates[i]->time, {}, &Balanced::time), *estimates[i]);
        ofCount.resize(std::min(ofCount.size(), kRefinedOfCount));
      }
      best_.push_back(std::move(*estimates[i]));
    }
    std::ranges::stable_sort(best_, {}, &Balanced::time);
    best_.resize(std::min(best_.size(), kRefined));
  }

  /// Those that are not among the best anyway.
  void addOtherCounts() {
    std::vector<Balanced> others;
    for (auto& [count, best] : bestOfCount_) {
      const auto among = static_cast<std::size_t>(
          std::ranges::count_if(best_, [&](const Balanced& one) { return one.choices.size() == count; }));
      for (std::size_t i = among; i < best.size(); ++i) others.push_back(std::move(best[i]));
    }
    bestOfCount_.clear();
    std::ranges::stable_sort(others, {}, &Balanced::time);
    others.resize(std::min(others.size(), kRefinedOfAllCounts));
    std::ranges::move(others, std::back_inserter(best_));
    std::ranges::stable_sort(best_, {}, &Balanced::time);
  }

  /// Devices in a fixed order; best(k, n) = max over m of best(k - 1, m) + throughput(blocks m .. n). One grouping for each
  /// number of pipelines.
  std::vector<Grouping> contiguous() {
    const DeviceOrder order(stages_.types());
    const int blocks = order.blocks();
    if (blocks < 2) return {};
    const int most = std::min(blocks, mostPipelines_);
    std::vector<Grouping> ranges;
    for (int first = 0; first < blocks; ++first) {
      for (int last = first + 1; last <= blocks; ++last) ranges.push_back({order.range(first, last)});
    }
    // How many pipelines there will be is open: as many as fit beside one of this size.
    std::vector<const Grouping*> asked;
    for (Grouping& grouping : ranges) {
      grouping.resize(static_cast<std::size_t>(pipelinesBeside(grouping.front())), grouping.front());
      asked.push_back(&grouping);
    }
    fillCache(asked);
    if (session_.stopped()) return {};

    const auto throughput = [&](int first, int last) {
      const Composition composition = order.range(first, last);
      const CacheKey key = keyOf(composition, pipelinesBeside(composition));
      return throughputOf(key, cache_.at(key));
    };
    const auto size = static_cast<std::size_t>(blocks + 1);
    std::vector<std::vector<double>> ofRange(size, std::vector<double>(size, 0.0));
    for (int first = 0; first < blocks; ++first) {
      for (int last = first + 1; last <= blocks; ++last)
        ofRange[static_cast<std::size_t>(first)][static_cast<std::size_t>(last)] = throughput(first, last);
    }
    std::vector<Grouping> found;
    std::vector<std::vector<int>> from;  // [k][n]: m
    std::vector<double> best = ofRange.front();
    for (int k = 2; k <= most; ++k) {
      std::vector<double> next(size, 0.0);
      std::vector<int>& cuts = from.emplace_back(size, 0);
      for (std::size_t n = 1; n < size; ++n) {
        for (std::size_t m = 1; m < n; ++m) {
          const double sum = best[m] + ofRange[m][n];
          if (sum <= next[n]) continue;
          next[n] = sum;
          cuts[n] = static_cast<int>(m);
        }
      }
      best = std::move(next);
      Grouping grouping;
      int last = blocks;
      for (int stage = k; stage >= 2 && last > 0; --stage) {
        const int first = from[static_cast<std::size_t>(stage - 2)][static_cast<std::size_t>(last)];
        grouping.push_back(order.range(first, last));
        last = first;
      }
      if (last == 0) continue;
      grouping.push_back(order.range(0, last));
      std::ranges::sort(grouping, std::greater<>{});
      found.push_back(std::move(grouping));
    }
    keepAllowed(found);
    return found;
  }

  int pipelinesBeside(const Composition& composition) const {
    return std::clamp(static_cast<int>(power_ / stages_.power(composition)), 1, mostPipelines_);
  }

  std::optional<Balanced> balanced(const Grouping& grouping, const Choices& choices) const {
    std::vector<const PipelineChoice*> usable;
    std::vector<const Composition*> compositions;
    for (std::size_t p = 0; p < grouping.size(); ++p) {
      if (!choices[p]) continue;
      usable.push_back(&*choices[p]);
      compositions.push_back(&grouping[p]);
    }
    if (usable.empty()) return std::nullopt;
    const Balance balance = balanceBatches(usable, problem_.training.globalBatch);
    Balanced result{.time = balance.time};
    for (std::size_t p = 0; p < usable.size(); ++p) {
      if (balance.batches[p] == 0) continue;
      result.choices.push_back(*usable[p]);
      result.compositions.push_back(*compositions[p]);
      result.batches.push_back(balance.batches[p]);
    }
    // Without it a thousand small pipelines look best, and then sync the whole model each.
    Seconds sync;
    for (const PipelineChoice& taken : result.choices)
      sync = std::max(sync, stages_.syncEstimate(taken, static_cast<int>(result.choices.size())));
    result.time += sync;
    return result;
  }

  void considerPlaced(const std::vector<Balanced>& all, std::string_view finder) {
    const std::size_t orders = fillingOrders_.size();
    session_.consider(
        orders * all.size(),
        [&](std::size_t i) {
          const Balanced& one = all[i / orders];
          if (one.choices.empty()) return std::vector<Pipeline>{};
          return placed(session_.model(), stages_, limits_, one.choices, one.batches, fillingOrders_[i % orders]);
        },
        finder);
  }

  /// Step 3 c: the stages again, for the local batches that 3 b gave; then the batches again for these stages.
  Balanced refined(const Balanced& start, bool rebalance) {
    Balanced now = start;
    const int pipelines = static_cast<int>(now.choices.size());
    std::map<std::pair<Composition, std::int64_t>, std::optional<PipelineChoice>> found;
    for (std::size_t p = 0; p < now.choices.size(); ++p) {
      const auto [entry, isNew] = found.try_emplace({now.compositions[p], now.batches[p]});
      if (isNew) entry->second = stages_.best(now.compositions[p], now.batches[p], pipelines, Care::Thorough);
      if (!entry->second) return {};
      now.choices[p] = *entry->second;
    }
    if (rebalance) {
      std::vector<const PipelineChoice*> choices;
      for (const PipelineChoice& choice : now.choices) choices.push_back(&choice);
      now.batches = balanceBatches(choices, problem_.training.globalBatch).batches;
      if (std::ranges::find(now.batches, 0) != now.batches.end()) return {};
    }
    return now;
  }

  SearchSession& session_;
  const Problem& problem_;
  const EthOptions& options_;
  Limits limits_;
  StageSearch stages_;
  ThroughputBounds bounds_;
  int mostPipelines_;
  double power_ = 0;
  std::vector<std::vector<int>> fillingOrders_;
  std::vector<double> flops_;  // of one device, by type
  std::map<CacheKey, std::optional<PipelineChoice>> cache_;
  std::vector<Balanced> best_;  // fastest first
  std::map<std::size_t, std::vector<Balanced>> bestOfCount_;  // by number of pipelines, fastest first
};

/// The sets of ops that all stages may recompute together: the levels that one of them would choose.
std::vector<Recomputing> recomputingRules(const SearchSession& session, const Limits& limits, RecomputeScope scope) {
  if (!limits.recompute || scope == RecomputeScope::None) return {{}};
  if (scope == RecomputeScope::Stage) return {{.perStage = true, .everywhere = {}}};
  const int kind = session.model().kindOf(limits.devices.front());
  const StageTable levels(session.model(), kind, limits.tps.front(), 1, {.perStage = true, .everywhere = {}});
  std::vector<Recomputing> rules;
  for (int level = 0; level < levels.levelCount(); ++level) rules.push_back({.perStage = false, .everywhere = levels.ops(level)});
  return rules;
}

void runEth(SearchSession& session, const EthOptions& options) {
  const Limits& limits = session.limits();
  std::vector<std::unique_ptr<EthSearch>> searches;
  for (const Recomputing& rule : recomputingRules(session, limits, options.recompute))
    searches.push_back(std::make_unique<EthSearch>(session, options, rule));
  const auto phase = [&](const char* name, const std::function<void(EthSearch&)>& run) {
    if (session.stopped()) return;
    session.phase(name);
    for (const auto& search : searches) run(*search);
  };
  phase("balance", [](EthSearch& search) { search.balance(search.candidates()); });
  phase("dynamic programming", [](EthSearch& search) { search.balanceContiguous(); });
  phase("refine", [](EthSearch& search) { search.refine(); });
  if (session.stopped()) return;
  session.phase("polish");
  polish(session);
}

Result<Plan> planEth(const SearchTask& task, SearchObserver& observer, std::stop_token stop) {
  auto constraints = checkConstrainedTask("eth", ethOptionInfos(), task);
  if (!constraints) return constraints.error();
  const Result<EthOptions> options = parseEthOptions(task.options);
  if (!options) return options.error();
  SearchSession session("eth", task, observer, stop, *std::move(constraints));
  session.considerStart();
  session.phase("uniform grid");
  considerUniformGrid(session);
  runEth(session, *options);
  return withRemedy(session.finish("space exhausted"), task, stop);
}

}  // namespace

Planner ethPlanner() {
  return {.name = "eth",
          .summary = "the paper's: unlike pipelines, stages cut at half layers, recomputation per op, batches balanced",
          .options = {ethOptionInfos().begin(), ethOptionInfos().end()},
          .deviations = {"starts from the plan of uniform, so that it is never slower",
                         "stages of one type are neighbours and share tp and dp",
                         "a pipeline's first batch is its share of the compute, not the global batch",
                         "beyond 8 devices only even, separate and contiguous groups, and splits of equal blocks, are generated",
                         "ends with moves of single units and micro-batches under the simulator",
                         "recompute=global: one set of ops for the whole plan, of those that a stage would choose by benefit"},
          .plan = planEth};
}

}  // namespace evenkeel
