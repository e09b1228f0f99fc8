// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/eth/stage_search.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

#include "core/cost/simulator.h"

namespace evenkeel {
namespace {

constexpr Seconds kForever{std::numeric_limits<double>::infinity()};
struct Effort {
  double slack;           // configurations whose closed form is within this factor of the best are compared further
  std::size_t simulated;  // so many of them
  double tolerance;       // of the bottleneck
};
/// The closed form is easily 15 % off the simulation.
constexpr Effort kThorough{1.15, 8, 5e-4}, kEstimate{1.02, 3, 4e-3};
/// Replicas inside a stage, for pipelines of at most two types; with more types the choices multiply.
constexpr int kMostDp = 8;
constexpr std::size_t kMostTypesWithDp = 2, kMostTypesInAnyOrder = 3;

int ceilDivide(int a, int b) { return (a + b - 1) / b; }

}  // namespace

/// A partly cut pipeline: stage by stage as many units as the pace and the memory allow.
struct StageSearch::Cut {
  std::vector<const StageTable*> tables;
  std::vector<Seconds> sends;
  std::vector<int> inFlight, holders;
  int unitCount = 0;
  std::vector<LevelRange> stages;  // of the last successful run

  bool run(Seconds pace) {
    std::vector<LevelRange> found;
    const bool alone = tables.size() == 1;
    int first = 0;
    for (std::size_t s = 0; s < tables.size(); ++s) {
      const int most = unitCount - static_cast<int>(tables.size() - 1 - s);
      const Seconds budget = pace - sends[s];
      LevelRange best{{first, first}, 0};
      for (int level = 0; level < tables[s]->levelCount(); ++level) {
        const int last = tables[s]->lastUnit(first, most, level, budget, inFlight[s], holders[s], alone);
        if (last > best.units.last) best = {{first, last}, level};
        // Without a lack of memory a further level only costs time.
        if (last == most || tables[s]->time({{first, last + 1}, level}) > budget) break;
      }
      if (best.units.size() < 1) return false;
      found.push_back(best);
      first = best.units.last;
    }
    if (first < unitCount) return false;
    stages = std::move(found);
    return true;
  }

  [[nodiscard]] Seconds pace() const {
    Seconds longest;
    for (std::size_t s = 0; s < stages.size(); ++s) longest = std::max(longest, tables[s]->time(stages[s]) + sends[s]);
    return longest;
  }

  /// Only as many units of a stage at its level as needed; the others one level lower.
  [[nodiscard]] std::vector<LevelRange> relaxed(std::size_t s) const {
    const LevelRange whole = stages[s];
    int low = whole.level == 0 ? whole.units.size() : 0, high = whole.units.size();  // at `high` units it fits
    const auto split = [&](int count) {
      std::vector<LevelRange> parts;
      if (count > 0) parts.push_back({{whole.units.first, whole.units.first + count}, whole.level});
      if (count < whole.units.size()) parts.push_back({{whole.units.first + count, whole.units.last}, whole.level - 1});
      return parts;
    };
    while (low < high) {
      const int middle = (low + high) / 2;
      if (tables[s]->fits(split(middle), inFlight[s], holders[s], tables.size() == 1)) high = middle;
      else low = middle + 1;
    }
    return split(high);
  }
};

StageSearch::StageSearch(const CostModel& model, const Limits& limits, const Recomputing& recomputing,
                         std::function<bool()> stopped)
    : model_(model),
      limits_(limits),
      tables_(model, recomputing),
      stopped_(std::move(stopped)),
      classOfType_(model.cluster().deviceTypes.size(), -1) {
  std::vector<std::vector<int>> perNode;  // [class][node]
  for (const DeviceId device : limits.devices) {
    const int kind = model.kindOf(device);
    int& index = classOfType_[static_cast<std::size_t>(model.typeIndexOfKind(kind))];
    const Node& node = model.cluster().nodes[static_cast<std::size_t>(device.node)];
    if (index < 0) {
      index = static_cast<int>(types_.size());
      types_.push_back({.kind = kind, .intra = node.intra, .nic = node.nic});
      perNode.emplace_back(model.cluster().nodes.size(), 0);
    }
    TypeFigures& type = types_[static_cast<std::size_t>(index)];
    ++type.count;
    ++perNode[static_cast<std::size_t>(index)][static_cast<std::size_t>(device.node)];
    if (node.intra.bandwidth < type.intra.bandwidth) {
      type.kind = kind;
      type.intra = node.intra;
    }
    if (node.nic.bandwidth < type.nic.bandwidth) type.nic = node.nic;
    type.nicPerDevice = type.nicPerDevice && node.nicPerDevice;
  }
  for (std::size_t t = 0; t < types_.size(); ++t) {
    std::erase(perNode[t], 0);
    types_[t].mostPerNode = std::ranges::max(perNode[t]);
    types_[t].leastPerNode = std::ranges::min(perNode[t]);
  }
}

int StageSearch::typeOf(DeviceId device) const {
  return classOfType_[static_cast<std::size_t>(model_.cluster().typeIndexOf(device))];
}

double StageSearch::power(const Composition& composition) const {
  double sum = 0;
  for (std::size_t t = 0; t < composition.size(); ++t) {
    const DeviceType& type = model_.typeOfKind(types_[t].kind);
    sum += composition[t] * type.speed * type.peak.at(model_.training().precision).value;
  }
  return sum;
}

bool StageSearch::mayHold(const Composition& composition, int pipelines) const {
  const Training& training = model_.training();
  const std::int64_t parameters = storedParameters(model_.model(), 0, model_.model().unitCount());
  const std::int64_t sharded = parameters / (pipelines - 1 + kMostDp);
  const std::int64_t bytes = parameters * bytesOf(training.precision) +
                             (training.zeroStage >= 2 ? sharded : parameters) * gradientBytesPerParameter() +
                             (training.zeroStage >= 1 ? sharded : parameters) * optimizerBytesPerParameter(training.precision);
  Bytes memory;
  for (std::size_t t = 0; t < composition.size(); ++t) {
    memory += std::int64_t{composition[t]} * (model_.capacityOf(types_[t].kind) - model_.reservedOf(types_[t].kind));
  }
  return Bytes{bytes} <= memory;
}

std::vector<StageSearch::Attempt> StageSearch::attempts(const Composition& composition, std::int64_t localBatch) {
  std::vector<int> order;
  for (std::size_t t = 0; t < composition.size(); ++t) {
    if (composition[t] > 0) order.push_back(static_cast<int>(t));
  }
  std::vector<Attempt> out;
  std::vector<Run> runs;
  if (order.size() <= kMostTypesInAnyOrder) {
    do addRuns(composition, order, localBatch, runs, out);
    while (std::ranges::next_permutation(order).found);
  } else {
    // Early stages hold more activations, so memory decides: most first, and the reverse (another configuration, step 2).
    std::ranges::stable_sort(order, std::greater<>{},
                             [&](int t) { return model_.typeOfKind(types_[static_cast<std::size_t>(t)].kind).memory.value; });
    addRuns(composition, order, localBatch, runs, out);
    std::ranges::reverse(order);
    addRuns(composition, order, localBatch, runs, out);
  }
  std::ranges::stable_sort(out, {}, &Attempt::atLeast);
  return out;
}

/// Every tp and dp of each type in turn; `runs` holds those chosen so far.
void StageSearch::addRuns(const Composition& composition, const std::vector<int>& order, std::int64_t localBatch,
                          std::vector<Run>& runs, std::vector<Attempt>& out) {
  if (runs.size() == order.size()) {
    // Equal replicas everywhere are pipelines of their own.
    if (std::ranges::min(runs, {}, &Run::dp).dp == 1) addAttempts(runs, localBatch, out);
    return;
  }
  const int type = order[runs.size()];
  const int count = composition[static_cast<std::size_t>(type)];
  const int mostDp = order.size() < 2 || order.size() > kMostTypesWithDp ? 1 : std::min(kMostDp, limits_.mostDp);
  for (const int tp : limits_.tps) {
    if (tp > types_[static_cast<std::size_t>(type)].mostPerNode) break;
    for (int dp = 1; dp <= mostDp && tp * dp <= count; dp *= 2) {
      runs.push_back({type, tp, dp, count / (tp * dp)});
      addRuns(composition, order, localBatch, runs, out);
      runs.pop_back();
    }
  }
}

void StageSearch::addAttempts(const std::vector<Run>& runs, std::int64_t localBatch, std::vector<Attempt>& out) {
  int stages = 0, mostDp = 1;
  for (const Run& run : runs) {
    stages += run.stages;
    mostDp = std::max(mostDp, run.dp);
  }
  if (stages > model_.model().unitCount()) return;
  for (const int microBatch : microBatchChoices(localBatch)) {
    if (microBatch < mostDp) continue;  // a replica without samples
    Attempt attempt{.runs = runs, .microBatch = microBatch};
    Seconds fastest = kForever;
    double layersPerSecond = 0;
    for (const Run& run : runs) {
      const StageTable& table =
          tables_.of(types_[static_cast<std::size_t>(run.type)].kind, run.tp, ceilDivide(microBatch, run.dp));
      fastest = std::min(fastest, table.layerTime());
      layersPerSecond += run.stages / table.layerTime().value;
    }
    const double layers = model_.model().layers;
    attempt.leastFill = layers * fastest;
    attempt.leastPace = {layers / layersPerSecond};
    attempt.atLeast = attempt.leastFill + (static_cast<double>(localBatch) / microBatch - 1.0) * attempt.leastPace;
    out.push_back(std::move(attempt));
  }
}

Seconds StageSearch::sendTime(const Run& from, const Run& to, int samples) const {
  const TypeFigures& a = types_[static_cast<std::size_t>(from.type)];
  const TypeFigures& b = types_[static_cast<std::size_t>(to.type)];
  const std::int64_t perSample = model_.training().sequenceLength * model_.model().hidden * bytesOf(model_.training().precision);
  const bool oneNode =
      model_.cluster().nodes.size() == 1 || (from.type == to.type && from.stages * from.tp * from.dp <= a.leastPerNode);
  const double copies = std::max(1.0, static_cast<double>(to.tp) / from.tp);
  double share = std::max(copies * ceilDivide(samples, from.dp), static_cast<double>(ceilDivide(samples, to.dp)));
  if (oneNode) return a.intra.latency + Seconds{share * static_cast<double>(perSample) / a.intra.bandwidth.value};
  if (!a.nicPerDevice || !b.nicPerDevice) share = static_cast<double>(to.tp) * samples;  // all flows through one NIC
  const BytesPerSecond bandwidth = std::min(a.nic.bandwidth, b.nic.bandwidth);
  return std::max(a.nic.latency, b.nic.latency) + Seconds{share * static_cast<double>(perSample) / bandwidth.value};
}

std::optional<PipelineChoice> StageSearch::cutBest(const Attempt& attempt, std::int64_t localBatch, int pipelines, Seconds limit,
                                                   double tolerance) {
  std::vector<Run> runOfStage;
  for (const Run& run : attempt.runs) runOfStage.insert(runOfStage.end(), static_cast<std::size_t>(run.stages), run);
  const std::int64_t microBatches = (localBatch + attempt.microBatch - 1) / attempt.microBatch;
  Cut cut;
  cut.unitCount = model_.model().unitCount();
  for (std::size_t s = 0; s < runOfStage.size(); ++s) {
    const Run& run = runOfStage[s];
    cut.tables.push_back(
        &tables_.of(types_[static_cast<std::size_t>(run.type)].kind, run.tp, ceilDivide(attempt.microBatch, run.dp)));
    cut.sends.push_back(s + 1 < runOfStage.size() ? sendTime(run, runOfStage[s + 1], attempt.microBatch) : Seconds{});
    cut.inFlight.push_back(inFlightMicroBatches(s, runOfStage.size(), microBatches));
    cut.holders.push_back(pipelines - 1 + run.dp);
  }
  const double further = static_cast<double>(localBatch) / attempt.microBatch - 1.0;
  const Seconds mostPace = further > 0 ? (limit - attempt.leastFill) / further : kForever;
  if (!cut.run(mostPace)) return std::nullopt;
  Seconds low = attempt.leastPace, high = cut.pace();
  while (high - low > tolerance * high) {
    const Seconds middle = 0.5 * (low + high);
    if (cut.run(middle)) high = std::min(middle, cut.pace());
    else low = middle;
  }
  PipelineChoice choice{.microBatch = attempt.microBatch};
  for (std::size_t s = 0; s < runOfStage.size(); ++s) {
    choice.stages.push_back({runOfStage[s].type, runOfStage[s].tp, runOfStage[s].dp, cut.relaxed(s)});
    choice.fill += cut.tables[s]->time(cut.stages[s]) + cut.sends[s];
  }
  choice.pace = cut.pace();
  return choice;
}

PipelineTimes StageSearch::timesOf(const PipelineChoice& choice, std::int64_t localBatch) {
  PipelineTimes times;
  times.microBatches = (localBatch + choice.microBatch - 1) / choice.microBatch;
  const int last = static_cast<int>(localBatch - (times.microBatches - 1) * choice.microBatch);
  const auto timeOf = [&](std::size_t s, int samples) {
    const StageChoice& stage = choice.stages[s];
    const StageTable& table =
        tables_.of(types_[static_cast<std::size_t>(stage.type)].kind, stage.tp, ceilDivide(samples, stage.dp));
    StageTime time{table.forward(stage.parts), table.backward(stage.parts), {}};
    if (s + 1 == choice.stages.size()) return time;
    const auto run = [&](const StageChoice& of) {
      const auto alike = std::ranges::count(choice.stages, of.type, &StageChoice::type);
      return Run{of.type, of.tp, of.dp, static_cast<int>(alike)};
    };
    time.send = sendTime(run(stage), run(choice.stages[s + 1]), samples);
    return time;
  };
  for (std::size_t s = 0; s < choice.stages.size(); ++s) {
    times.full.push_back(timeOf(s, choice.microBatch));
    times.last.push_back(last == choice.microBatch ? times.full.back() : timeOf(s, last));
  }
  return times;
}

/// Simulates the fill and as many micro-batches as it takes to see the steady pace; many further ones follow it.
void StageSearch::fitToSimulation(PipelineChoice& choice, std::int64_t localBatch) {
  PipelineTimes times = timesOf(choice, localBatch);
  const std::int64_t count = times.microBatches, stages = static_cast<std::int64_t>(times.full.size());
  const std::int64_t seen = std::min(count, 4 * stages + 8), period = std::min(stages, seen - 1);
  choice.pace = {};
  for (const StageTime& stage : times.full) choice.pace = std::max(choice.pace, stage.forward + stage.backward);
  const auto simulated = [&](std::int64_t microBatches, bool ragged) {
    PipelineTimes part = times;
    part.microBatches = microBatches;
    if (!ragged) part.last = part.full;
    return simulate(part).time;
  };
  if (period > 0) choice.pace = (simulated(seen, false) - simulated(seen - period, false)) / static_cast<double>(period);
  choice.fill = simulated(seen, true) - static_cast<double>(seen - 1) * choice.pace;
}

Seconds StageSearch::syncEstimate(const PipelineChoice& choice, int pipelines) const {
  if (pipelines < 2) return {};
  const Training& training = model_.training();
  const std::int64_t bytes =
      gradientBytesPerParameter() + (training.zeroStage >= 1 ? bytesOf(training.precision) : gradientBytesPerParameter());
  const double others = pipelines - 1;
  Seconds longest;
  for (const StageChoice& stage : choice.stages) {
    const TypeFigures& type = types_[static_cast<std::size_t>(stage.type)];
    const bool oneNode = model_.cluster().nodes.size() == 1;
    const LinkSpec& link = oneNode ? type.intra : type.nic;
    const UnitRange units = stage.units();
    const double held = static_cast<double>(storedParameters(model_.model(), units.first, units.last)) / stage.tp;
    // One ring for each place in a pipeline that the node's devices have; where they have the same one, they are members of one ring.
    int places = 0;
    for (const StageChoice& other : choice.stages) places += other.type == stage.type ? other.tp : 0;
    const double sharing = oneNode || type.nicPerDevice ? 1.0 : std::min(type.mostPerNode, places);
    longest = std::max(longest, Seconds{held * static_cast<double>(bytes) * sharing * others / pipelines / link.bandwidth.value} +
                                    2.0 * others * link.latency);
  }
  return longest;
}

std::optional<PipelineChoice> StageSearch::best(const Composition& composition, std::int64_t localBatch, int pipelines,
                                                Care care) {
  const Effort& effort = care == Care::Thorough ? kThorough : kEstimate;
  if (!mayHold(composition, pipelines)) return std::nullopt;
  std::vector<std::pair<Seconds, PipelineChoice>> found;  // by closed form
  Seconds least = kForever;
  const std::vector<Attempt> tries = attempts(composition, localBatch);
  for (const Attempt& attempt : tries) {
    if (stopped_()) return std::nullopt;
    if (attempt.atLeast > effort.slack * least) break;
    auto choice = cutBest(attempt, localBatch, pipelines, effort.slack * least, effort.tolerance);
    if (!choice) continue;
    const Seconds time = choice->fill + (static_cast<double>(localBatch) / choice->microBatch - 1.0) * choice->pace;
    least = std::min(least, time);
    found.emplace_back(time, std::move(*choice));
  }
  std::ranges::stable_sort(found, {}, &std::pair<Seconds, PipelineChoice>::first);
  found.resize(std::min(found.size(), effort.simulated));
  std::optional<PipelineChoice> best;
  Seconds bestTime = kForever;
  for (auto& [closed, choice] : found) {
    if (stopped_()) break;
    fitToSimulation(choice, localBatch);
    const Seconds time = choice.time((localBatch + choice.microBatch - 1) / choice.microBatch);
    if (time >= bestTime) continue;
    bestTime = time;
    best = std::move(choice);
  }
  return best;
}

}  // namespace evenkeel
