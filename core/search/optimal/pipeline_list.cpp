// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/pipeline_list.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/cost/bound.h"
#include "core/cost/evaluate.h"
#include "core/cost/memory.h"
#include "core/cost/stage_time.h"
#include "core/profile/analytic_profile.h"

namespace evenkeel::optimal {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Rounding must not leave out what is as fast.
constexpr double kRoundingMargin = 1.0 - 1e-9;

std::vector<Counts> countsUpTo(const Counts& all) {
  std::vector<Counts> lists = {{}};
  for (const int most : all) {
    std::vector<Counts> longer;
    for (const Counts& list : lists) {
      for (int count = 0; count <= most; ++count) {
        longer.push_back(list);
        longer.back().push_back(count);
      }
    }
    lists = std::move(longer);
  }
  return lists;
}

std::vector<int> evenShares(int dp, int microBatch, int samples) {
  evenkeel::Stage stage;
  stage.dp = dp;
  return replicaShares(stage, microBatch, samples);
}

}  // namespace

struct PipelineList::Run {
  const Query& query;
  const OnPipeline& onPipeline;
  int microBatch = 1, inFlight = 1;
  std::vector<double> leastInFront;  // by unit: no stages before it take less of a micro-batch
  std::vector<ListedPipeline::Stage> stages;  // from the last one
  Counts left;
  int free = 0;
  // Closed form: as there. As simulated: no schedule of inFlight - 1 micro-batches takes less than the fill, and the slowest stage.
  double fill = 0, pace = 0;
  std::vector<std::int64_t> mostBeside;  // samples that other pipelines on the devices left train within the limit, at most
};

PipelineList::PipelineList(PlanSpace& space)
    : space_(space),
      model_(space.model()),
      options_(space.options(space.deviceCount(), 1)),
      unitCount_(options_.unitCount()),
      deviceCount_(space.deviceCount()) {
  for (const DeviceId device : space.limits().devices) {
    const int kind = model_.kindOf(device);
    const auto found = std::ranges::find_if(sets_, [&](const DeviceSet& set) { return set.node == device.node && set.kind == kind; });
    DeviceSet& set = found == sets_.end() ? sets_.emplace_back(DeviceSet{device.node, kind, {}}) : *found;
    set.devices.push_back(device);
  }
  for (const DeviceSet& set : sets_) all_.push_back(static_cast<int>(set.devices.size()));
  const std::vector<StageOption>& options = options_.options();
  for (std::size_t o = 0; o < options.size(); ++o) optionOf_[{options[o].kind, options[o].tp, options[o].samples}] = o;
  times_.resize(options.size());
  addShapes();
}

void PipelineList::addShapes() {
  for (const int tp : space_.limits().tps) {
    Counts groups;
    for (const int count : all_) groups.push_back(count / tp);
    for (const Counts& taken : countsUpTo(groups)) {
      const int dp = std::accumulate(taken.begin(), taken.end(), 0);
      if (dp == 0 || dp > space_.batch() || dp > space_.limits().mostDp) continue;
      std::vector<std::size_t> used;  // which of them come first takes the larger shares
      for (std::size_t set = 0; set < taken.size(); ++set) {
        if (taken[set] > 0) used.push_back(set);
      }
      do {
        StageShape shape{.tp = tp, .sets = {}, .uses = Counts(sets_.size(), 0)};
        for (const std::size_t set : used) {
          shape.sets.insert(shape.sets.end(), static_cast<std::size_t>(taken[set]), set);
          shape.uses[set] = taken[set] * tp;
        }
        shapes_.push_back(std::move(shape));
      } while (std::ranges::next_permutation(used).found);
    }
  }
}

std::size_t PipelineList::indexOf(const Counts& counts) const {
  std::size_t index = 0;
  for (std::size_t set = 0; set < all_.size(); ++set)
    index = index * static_cast<std::size_t>(all_[set] + 1) + static_cast<std::size_t>(counts[set]);
  return index;
}

/// By index: samples that the devices' work allows within the limit.
std::vector<std::int64_t> PipelineList::mostSamplesIn(double limit) {
  if (leastTimes_.empty()) {
    for (const Counts& counts : everyCount()) {
      std::vector<DeviceId> devices;
      for (std::size_t set = 0; set < sets_.size(); ++set)
        devices.insert(devices.end(), sets_[set].devices.begin(), sets_[set].devices.begin() + counts[set]);
      leastTimes_.push_back(devices.empty() ? kNever : problemLowerBound(model_, devices).value);
    }
  }
  std::vector<std::int64_t> most;
  for (const double time : leastTimes_) {
    const double samples = static_cast<double>(space_.batch()) * limit / std::max(time, 1e-12);
    most.push_back(time == kNever ? 0 : static_cast<std::int64_t>(std::min(samples, static_cast<double>(space_.batch()))));
  }
  return most;
}

std::vector<Counts> PipelineList::everyCount() const { return countsUpTo(all_); }

long PipelineList::optionOf(int kind, int tp, int samples) const {
  const auto found = optionOf_.find({kind, tp, samples});
  return found == optionOf_.end() ? -1 : static_cast<long>(found->second);
}

/// All layers are alike: what a stage begins with, whether it has the head and how many units it has tell its time.
double PipelineList::stageTimeOf(std::size_t option, UnitRange units, double inFlight) {
  if (inFlight != std::floor(inFlight)) return options_.time(option, units, inFlight);
  std::vector<double>& times = times_[option];
  const auto count = static_cast<std::size_t>(unitCount_);
  if (times.empty()) times.assign(6 * (count + 1) * static_cast<std::size_t>(deviceCount_ + 1), -1.0);
  const std::size_t begins = units.first == 0 ? 0 : units.first % 2 == 1 ? 1 : 2;
  const std::size_t row = 2 * begins + (units.last == unitCount_ ? 1 : 0);
  double& time = times[(static_cast<std::size_t>(inFlight) * 6 + row) * (count + 1) + static_cast<std::size_t>(units.size())];
  if (time < 0) time = options_.time(option, units, inFlight);
  return time;
}

/// Of the first of so many stages. Where it holds all micro-batches, a smaller last one is among them.
PipelineList::Held PipelineList::heldOf(std::int64_t stages, std::int64_t microBatches, int microBatch, std::int64_t samples) {
  const bool isSmaller = stages >= microBatches && microBatches > 1;
  return {static_cast<int>(std::min(stages, microBatches)),
          isSmaller ? static_cast<int>(samples - (microBatches - 1) * microBatch) : microBatch};
}

std::vector<double> PipelineList::inFlightOf(int dp, int microBatch, Held held) {
  std::vector<double> all(static_cast<std::size_t>(dp), held.count);
  if (held.last == microBatch) return all;
  const std::vector<int> full = evenShares(dp, microBatch, microBatch), last = evenShares(dp, microBatch, held.last);
  for (std::size_t r = 0; r < all.size(); ++r) all[r] += static_cast<double>(last[r]) / full[r] - 1;
  return all;
}

std::optional<PipelineList::Compute> PipelineList::computeOf(const ListedPipeline::Stage& stage, int microBatch, int samples, Held held) {
  const StageShape& shape = shapes_[stage.shape];
  const int dp = shape.dp();
  Compute slowest;
  int before = -1;
  double inFlight = held.count, inFlightBefore = 0;
  std::size_t setBefore = 0;
  const std::vector<double> smaller = held.last == microBatch ? std::vector<double>{} : inFlightOf(dp, microBatch, held);
  const std::vector<int> uneven = samples == microBatch ? std::vector<int>{} : evenShares(dp, microBatch, samples);
  for (int r = 0; r < dp; ++r) {
    const auto replica = static_cast<std::size_t>(r);
    const int share = uneven.empty() ? microBatch / dp + (r < microBatch % dp ? 1 : 0) : uneven[replica];
    if (!smaller.empty()) inFlight = smaller[replica];
    if (share == 0 || (share == before && shape.sets[replica] == setBefore && inFlight == inFlightBefore)) continue;
    before = share;
    inFlightBefore = inFlight;
    setBefore = shape.sets[replica];
    const long option = optionOf(sets_[setBefore].kind, shape.tp, share);
    if (option < 0) {
      if (samples == microBatch) return std::nullopt;
      continue;  // of a smaller last micro-batch: no more than nothing is known
    }
    const auto o = static_cast<std::size_t>(option);
    const double time = stageTimeOf(o, stage.units, inFlight);
    if (time == kNever) return std::nullopt;
    const double forward = options_.forward(o, stage.units);
    slowest.forward = std::max(slowest.forward, forward);
    slowest.backward = std::max(slowest.backward, time - forward);
  }
  return slowest;
}

double PipelineList::sendBetween(std::size_t from, std::size_t to, int microBatch, int samples) {
  const auto [entry, isNew] = sends_.try_emplace({from, to, microBatch, samples});
  if (!isNew) return entry->second;
  Counts used(sets_.size(), 0);
  Pipeline pipeline{.localBatch = microBatch, .microBatch = microBatch, .stages = {}};
  pipeline.stages.push_back(stageOf({from, {0, 1}}, used));
  pipeline.stages.push_back(stageOf({to, {1, unitCount_}}, used));
  return entry->second = stageTime(model_, pipeline, 0, samples).send.value;
}

/// On the next devices of its sets.
evenkeel::Stage PipelineList::stageOf(const ListedPipeline::Stage& stage, Counts& used) const {
  const StageShape& shape = shapes_[stage.shape];
  evenkeel::Stage made;
  made.tp = shape.tp;
  made.dp = shape.dp();
  made.units = stage.units;
  for (const std::size_t set : shape.sets) {
    for (int rank = 0; rank < shape.tp; ++rank) made.devices.push_back(sets_[set].devices[static_cast<std::size_t>(used[set]++)]);
  }
  return made;
}

void PipelineList::list(const Query& query, const OnPipeline& onPipeline) {
  std::set<int> microBatches;
  for (const auto& [kindTpSamples, option] : optionOf_) {
    const std::int64_t samples = std::get<2>(kindTpSamples);
    for (std::int64_t dp = 1; dp <= deviceCount_; ++dp) {
      if (samples * dp <= space_.batch()) microBatches.insert(static_cast<int>(samples * dp));
    }
  }
  std::vector<std::int64_t> mostBeside = mostSamplesIn(query.limit);
  if (query.alone) std::ranges::fill(mostBeside, 0);
  for (const int microBatch : microBatches) {
    Run run{.query = query, .onPipeline = onPipeline, .microBatch = microBatch};
    run.mostBeside = mostBeside;
    run.leastInFront.assign(static_cast<std::size_t>(unitCount_) + 1, 0.0);
    for (int unit = 0; unit < unitCount_; ++unit) {
      double least = kNever;
      for (const StageShape& shape : shapes_) {
        if (shape.dp() > microBatch) continue;
        for (const std::size_t set : shape.sets) {
          const long option = optionOf(sets_[set].kind, shape.tp, microBatch / shape.dp());
          least = std::min(least, option < 0 ? 0.0 : options_.work(static_cast<std::size_t>(option), {unit, unit + 1}));
        }
      }
      run.leastInFront[static_cast<std::size_t>(unit) + 1] = run.leastInFront[static_cast<std::size_t>(unit)] + least;
    }
    if (run.leastInFront.back() == kNever) continue;
    const std::int64_t count = (space_.batch() + microBatch - 1) / microBatch;
    for (run.inFlight = 1; run.inFlight <= std::min<std::int64_t>({count, deviceCount_, unitCount_}); ++run.inFlight) {
      run.left = all_;
      run.free = deviceCount_;
      extend(run, unitCount_);
      if (*query.stepsLeft <= 0 || query.stopped()) return;
    }
  }
}

/// Stages in front of those there are, up to `unit`.
void PipelineList::extend(Run& run, int unit) {
  if (unit == 0) {
    finish(run);
    return;
  }
  const auto behind = static_cast<int>(run.stages.size());
  const double fill = run.fill, pace = run.pace;
  // Where all are held, the last micro-batch may be a small part: how small is not known yet.
  const int held = behind + 1 < run.inFlight ? behind + 1 : std::max(1, run.inFlight - 1);
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    const StageShape& shape = shapes_[s];
    bool isFree = shape.dp() <= run.microBatch;
    for (std::size_t set = 0; set < all_.size() && isFree; ++set) isFree = shape.uses[set] <= run.left[set];
    if (!isFree) continue;
    for (std::size_t set = 0; set < all_.size(); ++set) run.left[set] -= shape.uses[set];
    run.free -= shape.dp() * shape.tp;
    const std::int64_t beside = run.mostBeside[indexOf(run.left)];
    const double send = behind == 0 ? 0.0 : sendBetween(s, run.stages.back().shape, run.microBatch, run.microBatch);
    for (int first = run.free > 0 ? unit - 1 : 0; first >= 0; --first) {
      if (--*run.query.stepsLeft <= 0) break;
      const ListedPipeline::Stage stage{s, {first, unit}};
      const auto compute = computeOf(stage, run.microBatch, run.microBatch, {held, run.microBatch});
      if (!compute) {
        if (first > 0) break;  // more units do not fit either, but for a model that is whole
        continue;
      }
      const double time = compute->forward + compute->backward, inFront = run.leastInFront[static_cast<std::size_t>(first)];
      bool isInTime = true;
      if (run.query.measure == Measure::ClosedForm) {
        run.fill = fill + time + send;
        run.pace = std::max(pace, time + send);
        isInTime = run.fill + inFront + (run.inFlight - 1) * run.pace < run.query.limit;
      } else {
        run.fill = std::max(fill + time + 2 * send, std::max(1, run.inFlight - 1) * time);
        run.pace = std::max(pace, time);
        isInTime = run.fill + inFront < run.query.limit;
      }
      if (isInTime) {
        // What it trains at most must be enough beside what others may.
        const double most = behind + 1 > run.inFlight ? run.inFlight : std::floor(run.query.limit / run.pace) + 1;
        isInTime = most * run.microBatch + static_cast<double>(beside) >= static_cast<double>(space_.batch());
      }
      if (isInTime) {
        run.stages.push_back(stage);
        extend(run, first);
        run.stages.pop_back();
      } else if (run.inFlight > 2) {
        if (std::max(1, run.inFlight - 1) * time >= run.query.limit) break;
      }
    }
    for (std::size_t set = 0; set < all_.size(); ++set) run.left[set] += shape.uses[set];
    run.free += shape.dp() * shape.tp;
    run.fill = fill;
    run.pace = pace;
    if (*run.query.stepsLeft <= 0 || run.query.stopped()) return;
  }
}

/// At best; nothing: it does not fit.
std::optional<PipelineTimes> PipelineList::timesOf(const ListedPipeline& pipeline, std::int64_t samples) {
  const int count = static_cast<int>(pipeline.stages.size()), microBatch = pipeline.microBatch;
  PipelineTimes times{.full = {}, .last = {}, .microBatches = (samples + microBatch - 1) / microBatch, .transfers = model_.runtime().transfers};
  const auto last = static_cast<int>(samples - (times.microBatches - 1) * microBatch);
  for (int i = 0; i < count; ++i) {
    const ListedPipeline::Stage& stage = pipeline.stages[static_cast<std::size_t>(i)];
    const Held held = heldOf(count - i, times.microBatches, microBatch, samples);
    for (const int of : {microBatch, last}) {
      const auto compute = computeOf(stage, microBatch, of, held);
      if (!compute) return std::nullopt;
      const double send = i + 1 < count ? sendBetween(stage.shape, pipeline.stages[static_cast<std::size_t>(i) + 1].shape, microBatch, of) : 0.0;
      StageTime time{Seconds{compute->forward}, Seconds{compute->backward}, Seconds{send}};
      if (times.full.size() == times.last.size()) times.full.push_back(time);
      else times.last.push_back(time);
      if (last == microBatch) {
        times.last.push_back(time);
        break;
      }
    }
  }
  return times;
}

/// What follows at least: the optimizer, and the rings of the first stage, whose last backward is the pipeline's end (where they
/// may overlap with it, that of unit 0 alone), and of a tied embedding.
double PipelineList::afterwards(const ListedPipeline& pipeline, bool isAlone) const {
  const Training& training = model_.training();
  const int unused = deviceCount_ - std::accumulate(pipeline.uses.begin(), pipeline.uses.end(), 0);
  double optimizer = 0, sync = 0;
  for (const ListedPipeline::Stage& stage : pipeline.stages) {
    const StageShape& shape = shapes_[stage.shape];
    double parameters = 0;
    for (int unit = stage.units.first; unit < stage.units.last; ++unit)
      parameters += static_cast<double>(model_.parameters(model_.model().unitKind(unit), shape.tp));
    if (pipeline.stages.size() == 1) parameters -= static_cast<double>(model_.tiedParameters(shape.tp));
    if (training.zeroStage > 0) parameters /= shape.dp() + unused;
    for (const std::size_t set : shape.sets) {
      const DeviceType& type = model_.typeOfKind(sets_[set].kind);
      const DeviceClass& of = deviceClassOf(type);
      optimizer = std::max(optimizer, parameters * of.optimizerTraffic / (type.memoryBandwidth * (of.bandwidthEfficiency * type.speed)).value);
    }
  }
  const ListedPipeline::Stage& first = pipeline.stages.front();
  const StageShape& shape = shapes_[first.shape];
  const auto tied = static_cast<double>(model_.tiedParameters(1));
  double parameters = isAlone && pipeline.stages.size() == 1 ? 0.0 : tied;
  if (!isAlone) {
    const bool overlaps = model_.runtime().syncsBesideBackward && training.zeroStage == 0 && training.gradientSync == GradientSync::Block;
    for (int unit = 0; unit < (overlaps ? 1 : first.units.last); ++unit) {
      const UnitKind kind = model_.model().unitKind(unit);
      parameters += static_cast<double>(model_.parameters(kind, 1));
      if (kind == UnitKind::Embedding || kind == UnitKind::Head) parameters -= tied;
    }
  }
  const std::int64_t gathered = training.zeroStage > 0 ? bytesOf(training.precision) : gradientBytesPerParameter();
  const double bytes = parameters / shape.tp * static_cast<double>(gradientBytesPerParameter() + gathered);
  for (const std::size_t set : shape.sets) {
    const Node& node = model_.cluster().nodes[static_cast<std::size_t>(sets_[set].node)];
    double fastest = 0;  // of the ways out of the device
    if (node.devices.size() > 1) fastest = node.intra.bandwidth.value;
    for (const DeviceSet& other : sets_) {
      if (other.node != sets_[set].node) fastest = std::max(fastest, model_.link(sets_[set].devices.front(), other.devices.front()).bandwidth.value);
    }
    if (fastest > 0) sync = std::max(sync, 0.5 * bytes / fastest);  // a ring of two sends each byte once
  }
  return kRoundingMargin * (optimizer + sync);
}

void PipelineList::finish(Run& run) {
  const auto count = static_cast<std::int64_t>(run.stages.size());
  if (count < run.inFlight) return;  // listed with fewer
  ListedPipeline pipeline{.stages = {run.stages.rbegin(), run.stages.rend()},
                          .microBatch = run.microBatch,
                          .mostInFlight = run.inFlight,
                          .uses = Counts(all_.size(), 0)};
  for (std::size_t set = 0; set < all_.size(); ++set) pipeline.uses[set] = all_[set] - run.left[set];
  const std::int64_t batch = space_.batch(), least = pipeline.leastSamples();
  const std::int64_t most = count > run.inFlight ? std::min(batch, std::int64_t{run.inFlight} * run.microBatch) : batch;
  const bool isClosedForm = run.query.measure == Measure::ClosedForm;
  const double behind = isClosedForm ? 0.0 : afterwards(pipeline, run.query.alone);
  const auto inTime = [&](std::int64_t samples) {
    const auto times = timesOf(pipeline, samples);
    if (!times) return false;
    const double limit = run.query.limit - behind;
    if (isClosedForm) return closedForm(*times).value * kRoundingMargin < limit;
    return pipelineLowerBound(*times).value * kRoundingMargin < limit && simulate(*times).time.value * kRoundingMargin < limit;
  };
  if (run.query.alone) {
    if (most == batch && inTime(batch)) {
      pipeline.samples = batch;
      run.onPipeline(pipeline);
    }
    return;
  }
  std::int64_t low = least, high = std::min(most, batch - 1);
  if (low > high || !inTime(low)) return;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    if (inTime(middle)) low = middle;
    else high = middle - 1;
  }
  pipeline.samples = low;
  run.onPipeline(pipeline);
}

double PipelineList::timeOf(const ListedPipeline& pipeline, std::int64_t samples) {
  const auto times = timesOf(pipeline, samples);
  return times ? simulate(*times).time.value * kRoundingMargin : kNever;
}

std::vector<Pipeline> PipelineList::placed(std::span<const ListedPipeline* const> pipelines, std::span<const std::int64_t> samples) {
  std::vector<int> holders(static_cast<std::size_t>(unitCount_), 0);
  for (const ListedPipeline* pipeline : pipelines) {
    for (const ListedPipeline::Stage& stage : pipeline->stages) {
      for (int unit = stage.units.first; unit < stage.units.last; ++unit) holders[static_cast<std::size_t>(unit)] += shapes_[stage.shape].dp();
    }
  }
  Counts used(all_.size(), 0);
  std::vector<Pipeline> made;
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    const ListedPipeline& from = *pipelines[p];
    const auto count = static_cast<std::int64_t>(from.stages.size());
    Pipeline& pipeline = made.emplace_back();
    pipeline.localBatch = samples[p];
    pipeline.microBatch = static_cast<int>(std::min<std::int64_t>(from.microBatch, samples[p]));
    for (std::int64_t i = 0; i < count; ++i) {
      const ListedPipeline::Stage& of = from.stages[static_cast<std::size_t>(i)];
      const StageShape& shape = shapes_[of.shape];
      if (shape.dp() > pipeline.microBatch) return {};
      Stage& stage = pipeline.stages.emplace_back(stageOf(of, used));
      const std::vector<double> inFlight =
          inFlightOf(shape.dp(), pipeline.microBatch, heldOf(count - i, pipeline.microBatchCount(), pipeline.microBatch, samples[p]));
      const auto [sharers, exchangers] = std::ranges::minmax(
          std::span(holders).subspan(static_cast<std::size_t>(of.units.first), static_cast<std::size_t>(of.units.size())));
      const StageOptions& options = space_.options(sharers, exchangers);
      // The replica that must recompute most decides for all.
      double longest = -1;
      for (int r = 0; r < shape.dp(); ++r) {
        const int share = pipeline.microBatch / shape.dp() + (r < pipeline.microBatch % shape.dp() ? 1 : 0);
        const long option = optionOf(sets_[shape.sets[static_cast<std::size_t>(r)]].kind, shape.tp, share);
        if (option < 0) return {};
        const auto o = static_cast<std::size_t>(option);
        const double held = inFlight[static_cast<std::size_t>(r)];
        const double time = options.time(o, of.units, held);
        if (time == kNever) return {};
        const double added = (time - options.work(o, of.units)) / options.work(o, of.units);
        if (added <= longest) continue;
        longest = added;
        stage.recompute = options.recompute(o, of.units, held);
      }
    }
  }
  return made;
}

}  // namespace evenkeel::optimal
