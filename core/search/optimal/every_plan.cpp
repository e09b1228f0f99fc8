// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/every_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "core/cost/sync.h"
#include "core/cost/sync_blocks.h"
#include "core/cost/sync_rings.h"
#include "core/search/optimal/pipeline_list.h"

namespace evenkeel::optimal {
namespace {

/// Stages that are tried, and plans that are assessed: a few seconds for a model of so few units that all can be tried, else a
/// fraction of one.
constexpr std::int64_t kMostSteps = 40'000'000, kMostStepsOfMany = 2'000'000, kMostPlans = 200'000, kMostPlansOfMany = 5'000;
constexpr int kFewUnits = 12;
constexpr std::size_t kMostKept = 200'000;
/// Limits that are tried one after the other, as parts of the best time: a low one leaves little to try, and where it finds
/// anything the others are not needed.
constexpr std::array kParts = {0.6, 0.75, 0.85, 0.92, 0.97, 1.0};
constexpr double kLongest = 1e9;  // seconds: any plan will do

/// By pipeline: the rings that its first stage runs when the pipeline has ended, whatever it trains (where sync runs beside the
/// backward those of unit 0 alone). No iteration is shorter than a pipeline and this.
std::vector<double> syncBehind(const CostModel& model, std::span<const Pipeline> pipelines) {
  const Training& training = model.training();
  const bool overlaps = model.runtime().syncsBesideBackward && training.gradientSync == GradientSync::Block && training.zeroStage == 0;
  const std::vector<SyncBlock> blocks = syncBlocks(model, pipelines);
  const SyncRings rings(model, pipelines, blocks);
  std::vector<double> behind(pipelines.size(), 0.0);
  for (const SyncBlock& block : blocks) {
    if (overlaps && block.firstUnit > 0) continue;
    const int slices = rings.slices(block);
    const double ring = rings.slice(block, slices).time.value;
    for (const StageRef& ref : block.holders) {
      if (ref.stage == 0) behind[ref.pipeline] += slices / stageOf(pipelines, ref).tp * ring;
    }
  }
  return behind;
}

class EveryPlan {
 public:
  EveryPlan(SearchSession& session, PlanSpace& space, PlanMaker& maker) : session_(session), space_(space), maker_(maker), list_(space) {
    counts_ = list_.everyCount();
  }

  void run(Measure measure) {
    measure_ = measure;
    for (const bool alone : {true, false}) {
      const bool isSmall = space_.model().model().unitCount() <= kFewUnits;
      steps_ = isSmall ? kMostSteps : kMostStepsOfMany;
      plans_ = isSmall ? kMostPlans : kMostPlansOfMany;
      for (const double part : kParts) {
        const double limit = std::min(part * bestTime(), kLongest);
        // All that is faster than the limit was tried, unless the steps did not suffice.
        if (isOver() || (alone ? tryAlone(limit) : tryTogether(limit)) < limit) break;
      }
    }
  }

 private:
  /// By pipeline: the rings behind it; and the optimizer.
  struct Behind {
    std::vector<double> sync;
    double optimizer = 0;
  };

  [[nodiscard]] bool isOver() const { return steps_ <= 0 || plans_ <= 0 || session_.stopped(); }
  [[nodiscard]] double bestTime() const { return measure_ == Measure::ClosedForm ? maker_.closedForm() : session_.incumbentTime().value; }

  [[nodiscard]] PipelineList::Query query(double limit, bool alone) {
    return {.measure = measure_, .limit = limit, .alone = alone, .stepsLeft = &steps_, .stopped = [this] {
              return session_.stopped();
            }};
  }

  /// One pipeline. The best time then.
  double tryAlone(double limit) {
    list_.list(query(limit, true), [this](const ListedPipeline& pipeline) {
      assess({&pipeline}, {pipeline.samples});
    });
    flush();
    return bestTime();
  }

  /// Several pipelines. The best time then.
  double tryTogether(double limit) {
    mostOfRest_.assign(counts_.size(), 0);
    kept_.clear();
    std::vector<std::int64_t> best(counts_.size(), 0);  // of one pipeline on these devices
    list_.list(query(limit, false), [&](ListedPipeline& pipeline) {
      std::int64_t& most = best[list_.indexOf(pipeline.uses)];
      most = std::max(most, pipeline.samples);
      if (kept_.size() < kMostKept) kept_.push_back(std::move(pipeline));
    });
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        if (best[j] == 0) continue;
        Counts rest = counts_[i];
        if (take(rest, counts_[j])) mostOfRest_[i] = std::max(mostOfRest_[i], best[j] + mostOfRest_[list_.indexOf(rest)]);
      }
    }
    std::erase_if(kept_, [&](const ListedPipeline& pipeline) {
      Counts rest = list_.all();
      static_cast<void>(take(rest, pipeline.uses));
      return pipeline.samples + mostOfRest_[list_.indexOf(rest)] < space_.batch();
    });
    // Those of the same devices stand together, and what trains most comes first.
    std::ranges::stable_sort(kept_, [&](const ListedPipeline& a, const ListedPipeline& b) {
      const std::size_t ofA = list_.indexOf(a.uses), ofB = list_.indexOf(b.uses);
      return ofA != ofB ? ofA > ofB : a.samples > b.samples;
    });
    nextDevices_.assign(kept_.size(), kept_.size());
    for (std::size_t i = kept_.size(); i-- > 0;) {
      if (i + 1 < kept_.size()) nextDevices_[i] = kept_[i].uses == kept_[i + 1].uses ? nextDevices_[i + 1] : i + 1;
    }
    times_.assign(kept_.size(), {});
    stagesOf_.clear();
    for (const ListedPipeline& pipeline : kept_) {
      std::vector<std::array<std::size_t, 2>> stages;  // each ends where the next one begins
      for (const ListedPipeline::Stage& stage : pipeline.stages) stages.push_back({stage.shape, static_cast<std::size_t>(stage.units.first)});
      stagesOf_.push_back(knownStages_.try_emplace(std::move(stages), knownStages_.size()).first->second);
    }
    std::vector<std::size_t> chosen;
    combine(0, list_.all(), 0, chosen);
    flush();
    return bestTime();
  }

  [[nodiscard]] static bool take(Counts& from, const Counts& some) {
    for (std::size_t set = 0; set < from.size(); ++set) {
      if ((from[set] -= some[set]) < 0) return false;
    }
    return true;
  }

  void combine(std::size_t first, const Counts& left, std::int64_t samples, std::vector<std::size_t>& chosen) {
    if (samples >= space_.batch() && chosen.size() > 1) split(chosen);
    for (std::size_t next = first; next < kept_.size() && !isOver();) {
      Counts rest = left;
      --steps_;
      if (!take(rest, kept_[next].uses) ||
          samples + kept_[next].samples + mostOfRest_[list_.indexOf(rest)] < space_.batch()) {
        next = nextDevices_[next];
        continue;
      }
      chosen.push_back(next);
      combine(next, rest, samples + kept_[next].samples, chosen);
      chosen.pop_back();
      ++next;
    }
  }

  [[nodiscard]] double timeOf(std::size_t kept, std::int64_t samples) {
    std::map<std::int64_t, double>& times = times_[kept];
    const auto found = times.find(samples);
    return found != times.end() ? found->second : times[samples] = list_.timeOf(kept_[kept], samples);
  }

  /// What follows these pipelines at least; micro-batches and samples do not matter. Null: they do not fit with these samples.
  [[nodiscard]] const Behind* behindOf(const std::vector<std::size_t>& chosen, const std::vector<const ListedPipeline*>& pipelines,
                                       const std::vector<std::int64_t>& samples) {
    std::vector<std::size_t> ids;
    for (const std::size_t index : chosen) ids.push_back(stagesOf_[index]);
    const auto found = behind_.find(ids);
    if (found != behind_.end()) return &found->second;
    --plans_;
    const std::vector<Pipeline> any = list_.placed(pipelines, samples);
    if (any.empty()) return nullptr;
    return &(behind_[std::move(ids)] = {syncBehind(space_.model(), any), syncTime(space_.model(), any).optimizer.value});
  }

  /// Every way to give the batch to these pipelines; by the closed form all are as good.
  void split(const std::vector<std::size_t>& chosen) {
    std::vector<const ListedPipeline*> pipelines;
    std::vector<std::int64_t> samples;
    for (const std::size_t index : chosen) {
      pipelines.push_back(&kept_[index]);
      samples.push_back(kept_[index].samples);
    }
    std::int64_t surplus = std::accumulate(samples.begin(), samples.end(), std::int64_t{0}) - space_.batch();
    for (std::size_t p = 0; p < samples.size(); ++p) {
      const std::int64_t taken = std::min(surplus, samples[p] - pipelines[p]->leastSamples());
      samples[p] -= taken;
      surplus -= taken;
    }
    if (surplus > 0) return;
    if (measure_ == Measure::ClosedForm) {
      assess(pipelines, samples);
      return;
    }
    const Behind* const behind = behindOf(chosen, pipelines, samples);
    if (behind == nullptr) return;
    const auto give = [&](const auto& self, std::size_t p, std::int64_t left) -> void {
      if (isOver()) return;
      const bool isLast = p + 1 == pipelines.size();
      const std::int64_t least = pipelines[p]->leastSamples(), most = std::min(pipelines[p]->samples, isLast ? left : left - 1);
      for (std::int64_t of = isLast ? std::max(least, left) : least; of <= most; ++of) {
        --steps_;
        if (timeOf(chosen[p], of) + behind->sync[p] + behind->optimizer >= session_.incumbentTime().value) break;
        samples[p] = of;
        if (isLast) assess(pipelines, samples);
        else self(self, p + 1, left - of);
      }
    };
    give(give, 0, space_.batch());
  }

  void assess(const std::vector<const ListedPipeline*>& pipelines, const std::vector<std::int64_t>& samples) {
    --plans_;
    std::vector<Pipeline> plan = list_.placed(pipelines, samples);
    if (plan.empty()) return;
    if (measure_ == Measure::ClosedForm) maker_.noteClosedForm(plan);
    waiting_.push_back(std::move(plan));
    if (waiting_.size() >= kBatch) flush();
  }

  void flush() {
    session_.consider(
        waiting_.size(), [this](std::size_t i) { return waiting_[i]; }, "optimal: every plan");
    waiting_.clear();
  }

  static constexpr std::size_t kBatch = 64;
  SearchSession& session_;
  PlanSpace& space_;
  PlanMaker& maker_;
  PipelineList list_;
  std::vector<Counts> counts_;
  Measure measure_ = Measure::Schedule;
  std::int64_t steps_ = 0, plans_ = 0;
  std::vector<std::int64_t> mostOfRest_;  // by devices: samples of pipelines on them, at most
  std::vector<ListedPipeline> kept_;
  std::vector<std::size_t> nextDevices_;                // of kept_: the next one on other devices
  std::vector<std::map<std::int64_t, double>> times_;   // of kept_, by samples
  std::map<std::vector<std::array<std::size_t, 2>>, std::size_t> knownStages_;  // (shape, first unit) of a pipeline's stages
  std::vector<std::size_t> stagesOf_;                                           // of kept_
  std::map<std::vector<std::size_t>, Behind> behind_;                           // by the stages of pipelines
  std::vector<std::vector<Pipeline>> waiting_;
};

}  // namespace

void tryEveryPlan(SearchSession& session, PlanSpace& space, PlanMaker& maker) {
  EveryPlan every(session, space, maker);
  every.run(Measure::Schedule);
  every.run(Measure::ClosedForm);
}

}  // namespace evenkeel::optimal
