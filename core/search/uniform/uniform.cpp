// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/uniform/uniform.h"

#include <algorithm>

#include "core/cost/stage_time.h"
#include "core/search/remedy.h"
#include "core/search/tp_groups.h"

namespace evenkeel {
namespace {

enum class Recomputing { None, Selective, Full };

/// One point of the grid.
struct Grid {
  int tp = 1, pp = 1, dp = 1;
  int microBatch = 1;
  Recomputing recomputing = Recomputing::None;
  bool dpFirst = true;  // the dp groups of a stage are neighbours (Megatron's rank order), else the stages of a pipeline are
};

/// Up to so many replicas every number is tried, beyond them halves: with one far device the others alone may be faster.
constexpr int kMostDpInFull = 16;
/// Pipeline degrees beyond these are tried only where they divide the layers.
constexpr int kMostOddStages = 16;

/// part i of `total` split over `parts`: larger ones first.
std::int64_t evenPart(std::int64_t total, std::int64_t parts, std::int64_t i) {
  return total / parts + (i < total % parts ? 1 : 0);
}

std::vector<Recompute> recomputeOf(Recomputing recomputing, UnitRange units, const Model& model) {
  UnitRange blocks{std::max(units.first, 1), std::min(units.last, model.unitCount() - 1)};
  if (recomputing == Recomputing::None || blocks.size() < 1) return {};
  Recompute recompute{blocks, {Op::Score, Op::Softmax, Op::AttentionDropout, Op::Context}};
  if (recomputing == Recomputing::Full) {
    recompute.ops = opsOfLayer(model);
  }
  return {recompute};
}

class UniformGrid {
 public:
  UniformGrid(SearchSession& session, const PlannerOptions& options)
      : session_(session), problem_(session.problem()), limits_(session.limits()) {
    // Checked by the planner before; absent means all.
    const auto only = [&](const char* name) { return integerOption(options, name, 0).value(); };
    for (const int tp : limits_.tps) {
      if (only("tp") > 0 && tp != only("tp")) continue;
      groups_.emplace_back(tp, tpGroups(problem_.cluster, limits_.devices, tp));
      // What stays idle should be what is hardest to reach, and what has fewest neighbours.
      std::ranges::stable_sort(groups_.back().second, {}, [&](const TpGroup& group) {
        return std::pair(reach(group), -std::ssize(problem_.cluster.nodes[static_cast<std::size_t>(group.front().node)].devices));
      });
      addPoints(tp, static_cast<int>(groups_.back().second.size()), static_cast<int>(only("pp")));
    }
  }

  void consider() {
    session_.consider(
        points_.size(), [this](std::size_t i) { return make(points_[i]); }, "uniform grid");
  }

 private:
  void addPoints(int tp, int groupCount, int onlyPp) {
    const int layers = problem_.model.layers;
    for (int pp = 1; pp <= std::min(groupCount, layers); ++pp) {
      if (onlyPp > 0 ? pp != onlyPp : pp > kMostOddStages && layers % pp != 0) continue;
      const int mostDp = static_cast<int>(std::min<std::int64_t>(groupCount / pp, problem_.training.globalBatch));
      for (int dp = mostDp; dp >= 1; dp = dp <= kMostDpInFull ? dp - 1 : dp / 2) {
        for (const int microBatch : microBatchChoices(evenPart(problem_.training.globalBatch, dp, 0))) {
          for (const Recomputing recomputing : {Recomputing::None, Recomputing::Selective, Recomputing::Full}) {
            if (recomputing != Recomputing::None && !limits_.recompute) continue;
            points_.push_back({tp, pp, dp, microBatch, recomputing, true});
            if (pp > 1 && dp > 1) points_.push_back({tp, pp, dp, microBatch, recomputing, false});
          }
        }
      }
    }
  }

  /// Of a residual tensor of one sample, over the NIC of the group's node.
  [[nodiscard]] Seconds reach(const TpGroup& group) const {
    const LinkSpec& nic = problem_.cluster.nodes[static_cast<std::size_t>(group.front().node)].nic;
    const Training& training = problem_.training;
    const Bytes boundary{training.sequenceLength * problem_.model.hidden * bytesOf(training.precision)};
    return nic.latency + nic.transferTime(boundary);
  }

  std::vector<Pipeline> make(const Grid& grid) const {
    std::vector<Pipeline> pipelines;
    for (int d = 0; d < grid.dp; ++d) {
      pipelines.push_back(pipelineOf(grid, d));
      // The first one holds a largest batch: a bound of it saves the others.
      if (d == 0 && pipelineLowerBound(pipelineTimes(session_.model(), pipelines.front())) >= session_.incumbentTime()) return {};
    }
    return pipelines;
  }

  Pipeline pipelineOf(const Grid& grid, int d) const {
    const auto& groups = std::ranges::find(groups_, grid.tp, &std::pair<int, std::vector<TpGroup>>::first)->second;
    Pipeline pipeline;
    pipeline.localBatch = evenPart(problem_.training.globalBatch, grid.dp, d);
    pipeline.microBatch = static_cast<int>(std::min<std::int64_t>(grid.microBatch, pipeline.localBatch));
    int unit = 0;
    for (int s = 0; s < grid.pp; ++s) {
      Stage stage;
      stage.tp = grid.tp;
      stage.devices = groups[static_cast<std::size_t>(grid.dpFirst ? s * grid.dp + d : d * grid.pp + s)];
      stage.units.first = unit;
      unit = s == 0 ? 1 : unit;
      unit += 2 * static_cast<int>(evenPart(problem_.model.layers, grid.pp, s));
      if (s + 1 == grid.pp) ++unit;
      stage.units.last = unit;
      stage.recompute = recomputeOf(grid.recomputing, stage.units, problem_.model);
      pipeline.stages.push_back(std::move(stage));
    }
    return pipeline;
  }

  SearchSession& session_;
  const Problem& problem_;
  Limits limits_;
  std::vector<std::pair<int, std::vector<TpGroup>>> groups_;  // by tp
  std::vector<Grid> points_;
};

const std::vector<PlannerOptionInfo>& options() {
  static const std::vector<PlannerOptionInfo> known = {{"tp", "N", "only this tensor-parallel degree"},
                                                       {"pp", "N", "only this number of stages"}};
  return known;
}

Result<Plan> planUniform(const SearchTask& task, SearchObserver& observer, std::stop_token stop) {
  if (auto checked = checkTask("uniform", options(), task); !checked) return checked.error();
  for (const PlannerOptionInfo& option : options()) {
    if (auto value = integerOption(task.options, option.name, 1); !value) return std::move(value).error();
  }
  SearchSession session("uniform", task, observer, stop);
  session.phase("grid");
  considerUniformGrid(session, task.options);
  return withRemedy(session.finish("grid exhausted"), task, stop);
}

}  // namespace

void considerUniformGrid(SearchSession& session, const PlannerOptions& options) { UniformGrid(session, options).consider(); }

Planner uniformPlanner() {
  return {
      .name = "uniform",
      .summary = "Megatron-LM: one tp x pp x dp grid, layers and batches as equal as they divide",
      .options = options(),
      .deviations =
          {"what does not divide is distributed (first stages and pipelines take one more), never dropped",
           "dp replicas are written as pipelines, so that an uneven batch needs no padding",
           "both rank orders are tried: dp neighbours (Megatron's) and pipeline neighbours",
           "fewer replicas than fit are tried too (halved beyond 16), which leaves the devices idle that are hardest to reach"},
      .plan = planUniform};
}

}  // namespace evenkeel
