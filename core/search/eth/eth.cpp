// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/eth/eth.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "core/search/eth/balance.h"
#include "core/search/eth/grouping.h"
#include "core/search/eth/placement.h"
#include "core/search/eth/polish.h"
#include "core/search/eth/stage_search.h"
#include "core/search/remedy.h"
#include "core/search/session.h"
#include "core/search/uniform/uniform.h"

namespace evenkeel {
namespace {

/// Groupings that are refined and simulated: the best by the estimate.
constexpr std::size_t kRefined = 32;
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

class EthSearch {
 public:
  EthSearch(SearchSession& session, int mostPipelines)
      : session_(session),
        problem_(session.problem()),
        limits_(limitsOf(problem_)),
        stages_(session.model(), limits_, limits_.recompute, [&session] { return session.stopped(); }),
        mostPipelines_(static_cast<int>(std::min<std::int64_t>(mostPipelines, problem_.training.globalBatch))) {
    Composition all;
    for (const TypeFigures& type : stages_.types()) all.push_back(type.count);
    power_ = stages_.power(all);
  }

  void run() {
    if (session_.stopped()) return;
    session_.phase("groups");
    std::vector<Grouping> candidates = groupings(stages_.types(), mostPipelines_);
    session_.phase("stages");
    fillCache(candidates);
    if (session_.stopped()) return;
    session_.phase("dynamic programming");
    addContiguous(candidates);
    if (session_.stopped()) return;
    session_.phase("balance");
    refine(candidates);
    session_.phase("polish");
    polish(session_);
  }

 private:
  /// Step 3 a would start from the global batch; its share by compute is nearer to what step 3 b gives.
  CacheKey keyOf(const Composition& composition, int pipelines) const {
    const double share = static_cast<double>(problem_.training.globalBatch) * stages_.power(composition) / power_;
    const auto batch = std::clamp<std::int64_t>(std::llround(share), 1, problem_.training.globalBatch);
    // Without sharded state the number of pipelines changes nothing.
    return {composition, batch,
            problem_.training.zeroStage > 0 ? static_cast<int>(std::bit_floor(static_cast<unsigned>(pipelines))) : 1};
  }

  void fillCache(const std::vector<Grouping>& all) {
    std::vector<CacheKey> missing;
    for (const Grouping& grouping : all) {
      for (std::size_t i = 0; i < grouping.size(); ++i) {
        const Composition& composition = grouping[i];
        if (i > 0 && composition == grouping[i - 1]) continue;  // sorted: equal ones are neighbours
        CacheKey key = keyOf(composition, static_cast<int>(grouping.size()));
        if (cache_.emplace(key, std::nullopt).second) missing.push_back(std::move(key));
        else session_.countCached(1);
      }
    }
    std::vector<std::optional<PipelineChoice>> found(missing.size());
    session_.parallel(missing.size(), [&](std::size_t i) {
      found[i] = stages_.best(missing[i].composition, missing[i].localBatch, missing[i].pipelines, Care::Estimate);
    });
    for (std::size_t i = 0; i < missing.size(); ++i) cache_[missing[i]] = std::move(found[i]);
  }

  const PipelineChoice* cached(const Composition& composition, int pipelines) const {
    const auto found = cache_.find(keyOf(composition, pipelines));
    return found != cache_.end() && found->second ? &*found->second : nullptr;
  }

  /// Step 7: devices in a fixed order; best(k, n) = max over m of best(k - 1, m) + throughput(blocks m .. n). One grouping for
  /// each number of pipelines.
  void addContiguous(std::vector<Grouping>& candidates) {
    const DeviceOrder order(stages_.types());
    const int blocks = order.blocks();
    if (blocks < 2) return;
    const int most = std::min(blocks, mostPipelines_);
    std::vector<Grouping> ranges;
    for (int first = 0; first < blocks; ++first) {
      for (int last = first + 1; last <= blocks; ++last) ranges.push_back({order.range(first, last)});
    }
    // How many pipelines there will be is open: as many as fit beside one of this size.
    for (Grouping& grouping : ranges)
      grouping.resize(static_cast<std::size_t>(pipelinesBeside(grouping.front())), grouping.front());
    fillCache(ranges);
    if (session_.stopped()) return;

    const auto throughput = [&](int first, int last) {
      const Composition composition = order.range(first, last);
      const PipelineChoice* choice = cached(composition, pipelinesBeside(composition));
      if (!choice) return 0.0;
      const std::int64_t batch = keyOf(composition, 1).localBatch;
      return static_cast<double>(batch) / choice->time((batch + choice->microBatch - 1) / choice->microBatch).value;
    };
    const auto size = static_cast<std::size_t>(blocks + 1);
    std::vector<std::vector<double>> ofRange(size, std::vector<double>(size, 0.0));
    for (int first = 0; first < blocks; ++first) {
      for (int last = first + 1; last <= blocks; ++last)
        ofRange[static_cast<std::size_t>(first)][static_cast<std::size_t>(last)] = throughput(first, last);
    }
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
      candidates.push_back(std::move(grouping));
    }
    fillCache(candidates);
  }

  int pipelinesBeside(const Composition& composition) const {
    return std::clamp(static_cast<int>(power_ / stages_.power(composition)), 1, mostPipelines_);
  }

  /// A grouping whose pipelines all have a configuration, with the batches that balance them.
  struct Balanced {
    std::vector<PipelineChoice> choices;
    std::vector<Composition> compositions;
    std::vector<std::int64_t> batches;
    Seconds time;  // of the slowest pipeline, and of the sync, about
  };

  std::optional<Balanced> balanced(const Grouping& grouping) const {
    std::vector<const PipelineChoice*> choices;
    std::vector<const Composition*> compositions;
    const PipelineChoice* choice = nullptr;
    for (std::size_t i = 0; i < grouping.size(); ++i) {
      const Composition& composition = grouping[i];
      if (i == 0 || composition != grouping[i - 1]) choice = cached(composition, static_cast<int>(grouping.size()));
      if (!choice) continue;  // these devices stay idle
      choices.push_back(choice);
      compositions.push_back(&composition);
    }
    if (choices.empty()) return std::nullopt;
    const Balance balance = balanceBatches(choices, problem_.training.globalBatch);
    Balanced result{.time = balance.time};
    for (std::size_t p = 0; p < choices.size(); ++p) {
      if (balance.batches[p] == 0) continue;
      result.choices.push_back(*choices[p]);
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

  /// Step 3 c: the stages again, for the local batches that 3 b gave; then the batches again for these stages.
  std::vector<Pipeline> refined(const Balanced& start, bool rebalance) {
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
    return placed(session_.model(), stages_, limits_, now.choices, now.batches);
  }

  void refine(const std::vector<Grouping>& candidates) {
    std::vector<std::optional<Balanced>> estimates(candidates.size());
    session_.parallel(candidates.size(), [&](std::size_t i) { estimates[i] = balanced(candidates[i]); });
    std::vector<Balanced> best;
    for (auto& estimate : estimates) {
      if (estimate) best.push_back(std::move(*estimate));
    }
    std::ranges::stable_sort(best, {}, &Balanced::time);
    best.resize(std::min(best.size(), kRefined));
    while (!best.empty() && best.back().time > kEstimateSlack * best.front().time) best.pop_back();

    session_.consider(
        best.size(), [&](std::size_t i) { return placed(session_.model(), stages_, limits_, best[i].choices, best[i].batches); },
        "eth: balanced batches");
    session_.consider(
        2 * best.size(), [&](std::size_t i) { return refined(best[i / 2], i % 2 == 1); }, "eth: refined stages");
  }

  SearchSession& session_;
  const Problem& problem_;
  Limits limits_;
  StageSearch stages_;
  int mostPipelines_;
  double power_ = 0;
  std::map<CacheKey, std::optional<PipelineChoice>> cache_;
};

const std::vector<PlannerOptionInfo>& options() {
  static const std::vector<PlannerOptionInfo> known = {{"pipelines", "N", "at most so many pipelines"}};
  return known;
}

Result<Plan> planEth(const SearchTask& task, SearchObserver& observer, std::stop_token stop) {
  if (auto checked = checkTask("eth", options(), task); !checked) return checked.error();
  const auto mostPipelines = integerOption(task.options, "pipelines", kMaxDevices);
  if (!mostPipelines) return mostPipelines.error();
  SearchSession session("eth", task, observer, stop);
  if (!task.options.contains("pipelines")) {
    session.phase("uniform grid");
    considerUniformGrid(session);
  }
  EthSearch(session, static_cast<int>(std::min<std::int64_t>(*mostPipelines, kMaxDevices))).run();
  return withRemedy(session.finish("space exhausted"), task, stop);
}

}  // namespace

Planner ethPlanner() {
  return {.name = "eth",
          .summary = "the paper's: unlike pipelines, stages cut at half layers, recomputation per op, batches balanced",
          .options = options(),
          .deviations = {"starts from the plan of uniform, so that it is never slower",
                         "stages of one type are neighbours and share tp and dp",
                         "a pipeline's first batch is its share of the compute, not the global batch",
                         "beyond 8 devices only even, separate and contiguous groups are generated",
                         "ends with moves of single units and micro-batches under the simulator",
                         "early skipping, search order and their switches are not built yet"},
          .plan = planEth};
}

}  // namespace evenkeel
