// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/search/oracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/cost/evaluate.h"
#include "core/cost/memory.h"
#include "core/cost/simulator.h"
#include "core/cost/stage_time.h"

namespace evenkeel {
namespace {

/// By counts of devices, each list of counts up to `all` has an index.
std::size_t indexOf(const std::vector<int>& counts, const std::vector<int>& all) {
  std::size_t index = 0;
  for (std::size_t c = 0; c < all.size(); ++c) index = index * static_cast<std::size_t>(all[c] + 1) + static_cast<std::size_t>(counts[c]);
  return index;
}

std::vector<std::vector<int>> everyCount(const std::vector<int>& all) {
  std::vector<std::vector<int>> lists = {{}};
  for (const int most : all) {
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& list : lists) {
      for (int count = 0; count <= most; ++count) {
        longer.push_back(list);
        longer.back().push_back(count);
      }
    }
    lists = std::move(longer);
  }
  return lists;  // in the order of indexOf
}

bool divides(const Model& model, int tp) {
  return model.heads % tp == 0 && (model.kvHeads % tp == 0 || tp % model.kvHeads == 0) && model.ffn % tp == 0 &&
         model.paddedVocab() % tp == 0;
}

}  // namespace

/// What one call of fasterThan is about.
struct Oracle::Search {
  Seconds limit;
  Measure measure = Measure::Reported;
  std::optional<Found> best;

  // The pipelines that are being listed, from their last stage.
  int microBatch = 1, most = 1;  // micro-batches: at most so many, or any number where there are no more stages than that
  std::vector<Part> parts;
  Counts left;
  Seconds fill, pace;  // closed form: as there; reported: no schedule of `most` - 1 full micro-batches takes less than the fill
  std::vector<Seconds> inFront;  // by unit: what a micro-batch takes in the units before it at least

  bool isKeeping = false;
  std::vector<std::int64_t> bestAlone;   // by the devices used: most samples of one pipeline among several
  std::vector<std::int64_t> mostOfRest;  // by the devices left: no pipelines on them train more, at first by their work alone
  std::vector<Structure> kept;           // those of the same devices side by side, what trains most first
  std::vector<std::size_t> nextDevices;  // of kept: the first one on other devices
};

Oracle::Oracle(const Problem& problem)
    : problem_(problem),
      profile_(problem.model, problem.training),
      model_(problem.cluster, problem.model, problem.training, profile_),
      batch_(problem.training.globalBatch),
      unitCount_(problem.model.unitCount()) {
  for (const DeviceId device : problem.cluster.devices()) {
    if (obstacleTo(problem.model, problem.training.precision, problem.cluster.typeOf(device))) continue;
    const auto found = std::ranges::find_if(
        classes_, [&](const Class& c) { return c.node == device.node && c.kind == model_.kindOf(device); });
    Class& of = found == classes_.end() ? classes_.emplace_back(Class{device.node, model_.kindOf(device), {}}) : *found;
    of.devices.push_back(device);
    ++deviceCount_;
  }
  for (const Class& c : classes_) all_.push_back(static_cast<int>(c.devices.size()));
  recomputations_.emplace_back();
  OpSet every;
  for (const UnitKind kind : {UnitKind::Attention, UnitKind::Mlp}) {
    for (const Op op : opsOf(kind)) {
      recomputations_.emplace_back().set(static_cast<std::size_t>(op));
      every.set(static_cast<std::size_t>(op));
    }
  }
  recomputations_.push_back(every);
  addShapes();
}

void Oracle::addShapes() {
  std::vector<std::size_t> order(classes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (int tp = 1; tp <= deviceCount_; ++tp) {
    if (!divides(problem_.model, tp)) continue;
    Counts groups;
    for (const int count : all_) groups.push_back(count / tp);
    for (const Counts& taken : everyCount(groups)) {
      const int dp = std::accumulate(taken.begin(), taken.end(), 0);
      if (dp == 0 || dp > batch_) continue;
      // The classes that take part, in every order.
      std::vector<std::size_t> used;
      for (const std::size_t c : order) {
        if (taken[c] > 0) used.push_back(c);
      }
      do {
        Shape shape{.tp = tp, .replicas = {}, .uses = Counts(classes_.size(), 0)};
        for (const std::size_t c : used) {
          shape.replicas.insert(shape.replicas.end(), static_cast<std::size_t>(taken[c]), static_cast<int>(c));
          shape.uses[c] = taken[c] * tp;
        }
        shapes_.push_back(std::move(shape));
      } while (std::ranges::next_permutation(used).found);
    }
  }
}

/// Of one replica without recomputation.
Seconds Oracle::timeOfUnit(int kind, int tp, int share, UnitKind unit) const {
  const UnitCost cost = unitCost(model_.opCosts(kind, tp, share), unit, {});
  return cost.forward + cost.backward;
}

/// By the devices: no pipelines on them train more in time, because each sample takes some time on some devices in each unit. With a
/// second of a kind of unit on the devices of one class worth one, those of others work off the more the faster they are.
std::vector<std::int64_t> Oracle::mostByWork(Seconds limit) const {
  constexpr std::array kKinds = {UnitKind::Embedding, UnitKind::Attention, UnitKind::Mlp, UnitKind::Head};
  std::vector<std::array<double, 4>> least(classes_.size());  // device seconds of a sample, by class and kind of unit
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    for (std::size_t k = 0; k < kKinds.size(); ++k) {
      least[c][k] = std::numeric_limits<double>::infinity();
      for (const Shape& shape : shapes_) {
        if (shape.uses[c] == 0) continue;
        for (int share = 1; share <= batch_; ++share)
          least[c][k] = std::min(least[c][k], shape.tp * timeOfUnit(classes_[c].kind, shape.tp, share, kKinds[k]).value / share);
      }
    }
  }
  std::vector<std::int64_t> most;
  for (const Counts& counts : everyCount(all_)) {
    double samples = static_cast<double>(batch_);
    for (const std::array<double, 4>& worth : least) {
      double ofSample = 0, rate = 0;
      for (int unit = 0; unit < unitCount_; ++unit) ofSample += worth[static_cast<std::size_t>(problem_.model.unitKind(unit))];
      for (std::size_t c = 0; c < classes_.size(); ++c) {
        double fastest = 0;
        for (std::size_t k = 0; k < kKinds.size(); ++k) fastest = std::max(fastest, worth[k] / least[c][k]);
        rate += counts[c] * fastest;
      }
      samples = std::min(samples, (1 + 1e-9) * limit.value * rate / ofSample);
    }
    most.push_back(static_cast<std::int64_t>(samples));
  }
  return most;
}

/// By unit: what a micro-batch takes in the units before it at least, on whatever devices.
std::vector<Seconds> Oracle::leastInFront(int microBatch) const {
  std::vector<Seconds> all(static_cast<std::size_t>(unitCount_) + 1);
  for (int unit = 0; unit < unitCount_; ++unit) {
    Seconds least{std::numeric_limits<double>::infinity()};
    for (const Shape& shape : shapes_) {
      if (shape.dp() > microBatch) continue;
      for (const int c : shape.replicas)
        least = std::min(least, timeOfUnit(classes_[static_cast<std::size_t>(c)].kind, shape.tp, microBatch / shape.dp(), problem_.model.unitKind(unit)));
    }
    all[static_cast<std::size_t>(unit) + 1] = all[static_cast<std::size_t>(unit)] + (1 - 1e-9) * least;
  }
  return all;
}

Oracle::Held Oracle::heldOf(std::int64_t stagesBehind, std::int64_t microBatches, int microBatch, std::int64_t samples) {
  const std::int64_t count = std::min(stagesBehind + 1, microBatches);
  const bool isSmaller = count == microBatches && count > 1;
  return {static_cast<int>(count), isSmaller ? static_cast<int>(samples - (microBatches - 1) * microBatch) : microBatch};
}

std::optional<std::size_t> Oracle::choiceOf(const Part& part, int microBatch, Held held, bool isAlone,
                                            const std::vector<int>& holders, std::optional<bool> isEndless) {
  const Shape& shape = shapes_[part.shape];
  DeviceMemory device{.inFlight = held.count};
  const bool hasWholeTied = isEndless ? !*isEndless : !isAlone;
  const std::int64_t tied = model_.tiedParameters(shape.tp);
  for (int unit = part.units.first; unit < part.units.last; ++unit) {
    const UnitKind kind = problem_.model.unitKind(unit);
    std::int64_t count = model_.parameters(kind, shape.tp);
    const std::int64_t of = holders[static_cast<std::size_t>(unit)];
    device.parameters += count;
    device.shardedParameters += (count + of - 1) / of;
    // What ZeRO-2 exchanges at once grows with the holders, and does not share a tied embedding between stages.
    const bool isEnd = kind == UnitKind::Embedding || kind == UnitKind::Head;
    if (isEnd && (hasWholeTied || !isEndless)) count -= tied;
    const std::int64_t members = isEndless ? of : 1;
    device.unitParameters = std::max(device.unitParameters, (count * (3 * members - 2) + members - 1) / members);
  }
  if (hasWholeTied && (part.units.first == 0 || part.units.last == unitCount_)) device.wholeParameters = tied;
  if (isAlone) {
    device.parameters -= model_.tiedParameters(shape.tp);
    device.shardedParameters -= model_.tiedParameters(shape.tp) / holders.front();
  }
  const PartCost& cost = costOf(part, microBatch, microBatch);
  const PartCost& last = costOf(part, microBatch, held.last);
  for (const std::size_t c : cost.fastestFirst) {
    bool fits = true;
    for (int r = 0; r < shape.dp() && fits; ++r) {
      const auto replica = static_cast<std::size_t>(r);
      device.kind = classes_[static_cast<std::size_t>(shape.replicas[replica])].kind;
      device.saved = cost.choices[c].memory[replica].first;
      device.transient = cost.choices[c].memory[replica].second;
      device.boundary = isAlone ? Bytes{} : cost.choices[c].boundary[replica];
      MemoryUse use = memoryUse(model_, device);
      use.activations -= device.saved - last.choices[c].memory[replica].first;
      fits = lackOf(use) == Bytes{};
    }
    if (fits) return c;
  }
  return std::nullopt;
}

/// Stages in front of those there are, up to `unit`.
void Oracle::extend(Search& search, int unit) {
  if (unit == 0) {
    finishStructure(search);
    return;
  }
  const auto behind = static_cast<int>(search.parts.size());
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    const Shape& shape = shapes_[s];
    bool isFree = shape.dp() <= search.microBatch;
    for (std::size_t c = 0; c < all_.size() && isFree; ++c) isFree = shape.uses[c] <= search.left[c];
    if (!isFree) continue;
    int free = 0;
    for (std::size_t c = 0; c < all_.size(); ++c) free += search.left[c] -= shape.uses[c];
    const std::int64_t beside = search.mostOfRest[indexOf(search.left, all_)];
    const std::vector<int> holders(static_cast<std::size_t>(unitCount_), shape.dp() + deviceCount_ - shape.dp() * shape.tp);
    const Seconds fill = search.fill, pace = search.pace;
    const Seconds send = behind == 0 ? Seconds{} : sendBetween(s, search.parts.back().shape, search.microBatch, search.microBatch);
    for (int first = unit - 1; first >= 0; --first) {
      if (first > 0 && free == 0) continue;
      const Part part{s, {first, unit}};
      // A last micro-batch may have a single sample.
      const Held held = heldOf(behind, search.most, search.microBatch, (search.most - 1) * search.microBatch + 1);
      const auto choice = choiceOf(part, search.microBatch, held, first == 0 && behind == 0, holders);
      if (!choice) continue;
      const PartCost::Choice& cost = costOf(part, search.microBatch, search.microBatch).choices[*choice];
      const Seconds time = cost.forward + cost.backward;
      const Seconds inFront = search.inFront[static_cast<std::size_t>(first)];
      bool isInTime = true;
      if (search.measure == Measure::ClosedForm) {
        search.fill = fill + time + send;
        search.pace = std::max(pace, time + send);
        isInTime = search.fill + inFront + (search.most - 1.0) * search.pace < search.limit;
      } else {
        search.fill = std::max(fill + time + 2.0 * send, std::max(1.0, search.most - 1.0) * time);
        search.pace = std::max(pace, time);
        isInTime = search.fill + inFront < search.limit;
      }
      if (isInTime) {  // with what others may train it must be enough
        const double micros = behind + 1 > search.most ? search.most : 1 + std::floor((search.limit - inFront) / search.pace);
        isInTime = micros * search.microBatch + static_cast<double>(beside) >= static_cast<double>(batch_);
      }
      if (isInTime) {
        search.parts.push_back(part);
        extend(search, first);
        search.parts.pop_back();
      }
      search.fill = fill;
      search.pace = pace;
    }
    for (std::size_t c = 0; c < all_.size(); ++c) search.left[c] += shape.uses[c];
  }
}

void Oracle::finishStructure(Search& search) {
  const auto count = static_cast<std::int64_t>(search.parts.size());
  if (count < search.most) return;  // listed with fewer
  Structure structure{.parts = {search.parts.rbegin(), search.parts.rend()},
                      .microBatch = search.microBatch,
                      .mostMicroBatches = search.most,
                      .uses = Counts(all_.size(), 0)};
  for (std::size_t c = 0; c < all_.size(); ++c) structure.uses[c] = all_[c] - search.left[c];
  const std::int64_t least = structure.leastSamples();
  const std::int64_t most = count > search.most ? std::min(batch_, std::int64_t{search.most} * search.microBatch) : batch_;
  if (least > most) return;
  const auto inTime = [&](bool isAlone, std::int64_t samples) {
    const auto times = timesOf(structure, samples);
    if (!times) return false;
    return search.measure == Measure::ClosedForm ? closedForm(*times) < search.limit
                                                 : simulate(*times).time + afterwards(structure, isAlone) < search.limit;
  };
  const auto mostInTime = [&](bool isAlone) {
    std::int64_t low = least - 1, high = most;
    while (low < high) {
      const std::int64_t middle = (low + high + 1) / 2;
      if (inTime(isAlone, middle)) low = middle;
      else high = middle - 1;
    }
    return low < least ? std::int64_t{0} : low;
  };
  if (!search.isKeeping && most == batch_ && inTime(true, batch_)) evaluate(search, {&structure}, {batch_});
  structure.samples = std::min(mostInTime(false), batch_ - 1);
  if (structure.samples < least) return;
  if (!search.isKeeping) {
    std::int64_t& best = search.bestAlone[indexOf(structure.uses, all_)];
    best = std::max(best, structure.samples);
  } else if (structure.samples + search.mostOfRest[indexOf(search.left, all_)] >= batch_) {
    search.kept.push_back(std::move(structure));
  }
}

void Oracle::evaluate(Search& search, const std::vector<const Structure*>& structures, const std::vector<std::int64_t>& samples) {
  std::vector<int> holders(static_cast<std::size_t>(unitCount_), 0);
  const bool isEndless = std::ranges::all_of(structures, [](const Structure* structure) { return structure->parts.size() == 1; });
  for (const Structure* structure : structures) {
    for (const Part& part : structure->parts) {
      for (int unit = part.units.first; unit < part.units.last; ++unit) holders[static_cast<std::size_t>(unit)] += shapes_[part.shape].dp();
    }
  }
  Counts used(all_.size(), 0);
  std::vector<Pipeline> pipelines;
  std::vector<std::vector<std::size_t>> choices;
  for (std::size_t p = 0; p < structures.size(); ++p) {
    const Structure& structure = *structures[p];
    const auto count = static_cast<std::int64_t>(structure.parts.size());
    choices.emplace_back();
    Pipeline& pipeline = pipelines.emplace_back();
    pipeline.localBatch = samples[p];
    pipeline.microBatch = static_cast<int>(std::min<std::int64_t>(structure.microBatch, samples[p]));
    for (std::int64_t i = 0; i < count; ++i) {
      const Part& part = structure.parts[static_cast<std::size_t>(i)];
      if (shapes_[part.shape].dp() > pipeline.microBatch) return;
      const Held held = heldOf(count - i - 1, pipeline.microBatchCount(), pipeline.microBatch, samples[p]);
      const auto choice = choiceOf(part, pipeline.microBatch, held, count == 1, holders, isEndless);
      if (!choice) return;
      choices.back().push_back(*choice);
      pipeline.stages.push_back(stageOf(part, used));
      recompute(pipeline.stages.back(), *choice);
    }
  }
  while (true) {
    ++evaluated_;
    Seconds time;
    if (search.measure == Measure::Reported) {
      time = iterationTime(model_, pipelines);
    } else {
      for (const Pipeline& pipeline : pipelines) time = std::max(time, closedForm(pipelineTimes(model_, pipeline)));
    }
    if (time >= search.limit) return;
    const auto lack = worstLack(model_, pipelines);
    if (!lack) {
      search.limit = time;
      search.best = {time, std::move(pipelines)};
      return;
    }
    // What no stage knows alone does not fit: the next choice, which takes no less time.
    Stage& stage = pipelines[lack->pipeline].stages[lack->stage];
    std::size_t& choice = choices[lack->pipeline][lack->stage];
    const std::vector<std::size_t>& order =
        costOf(structures[lack->pipeline]->parts[lack->stage], pipelines[lack->pipeline].microBatch, pipelines[lack->pipeline].microBatch).fastestFirst;
    const auto next = std::next(std::ranges::find(order, choice));
    if (next == order.end()) return;
    recompute(stage, choice = *next);
  }
}

void Oracle::recompute(Stage& stage, std::size_t choice) const {
  stage.recompute.clear();
  Recompute recompute{stage.units, {}};
  for (std::size_t op = 0; op < kOpCount; ++op) {
    if (recomputations_[choice][op]) recompute.ops.push_back(static_cast<Op>(op));
  }
  if (!recompute.ops.empty()) stage.recompute.push_back(std::move(recompute));
}

/// Every way to give the batch to these pipelines.
void Oracle::evaluateSplits(Search& search, const std::vector<std::size_t>& chosen) {
  std::vector<const Structure*> structures;
  std::vector<std::int64_t> samples;
  for (const std::size_t index : chosen) {
    structures.push_back(&search.kept[index]);
    samples.push_back(search.kept[index].samples);
  }
  if (search.measure == Measure::ClosedForm) {  // all are as good
    std::int64_t surplus = std::accumulate(samples.begin(), samples.end(), std::int64_t{0}) - batch_;
    for (std::size_t p = 0; p < samples.size(); ++p) {
      const std::int64_t taken = std::min(surplus, samples[p] - structures[p]->leastSamples());
      samples[p] -= taken;
      surplus -= taken;
    }
    if (surplus == 0) evaluate(search, structures, samples);
    return;
  }
  const auto split = [&](const auto& self, std::size_t p, std::int64_t left) -> void {
    const Structure& structure = *structures[p];
    const std::int64_t least = structure.leastSamples();
    if (p + 1 == structures.size()) {
      if (left < least || left > structure.samples) return;
      samples[p] = left;
      evaluate(search, structures, samples);
      return;
    }
    for (std::int64_t of = least; of <= std::min(left - 1, structure.samples); ++of) {
      samples[p] = of;
      self(self, p + 1, left - of);
    }
  };
  split(split, 0, batch_);
}

void Oracle::combine(Search& search, std::size_t first, Counts left, std::int64_t samples, std::vector<std::size_t>& chosen) {
  if (samples >= batch_ && chosen.size() > 1) evaluateSplits(search, chosen);
  for (std::size_t next = first; next < search.kept.size();) {
    const Structure& structure = search.kept[next];
    Counts rest = left;
    bool isFree = true;
    for (std::size_t c = 0; c < all_.size(); ++c) isFree = (rest[c] -= structure.uses[c]) >= 0 && isFree;
    if (!isFree || samples + structure.samples + search.mostOfRest[indexOf(rest, all_)] < batch_) {
      next = search.nextDevices[next];
      continue;
    }
    chosen.push_back(next);
    combine(search, next, std::move(rest), samples + structure.samples, chosen);
    chosen.pop_back();
    ++next;
  }
}

std::optional<Oracle::Found> Oracle::fasterThan(Seconds limit, Measure measure) {
  Search search{.limit = limit, .measure = measure, .best = {}};
  const std::vector<Counts> lists = everyCount(all_);
  search.bestAlone.assign(lists.size(), 0);
  search.mostOfRest = mostByWork(limit);
  const auto listAll = [&] {
    for (int microBatch = 1; microBatch <= batch_; ++microBatch) {
      search.microBatch = microBatch;
      search.inFront = leastInFront(microBatch);
      const std::int64_t micros = (batch_ + microBatch - 1) / microBatch;
      for (search.most = 1; search.most <= std::min<std::int64_t>(deviceCount_, micros); ++search.most) {
        search.left = all_;
        extend(search, unitCount_);
      }
    }
  };
  listAll();
  std::vector<std::int64_t> mostOfRest(lists.size(), 0);
  for (std::size_t i = 0; i < lists.size(); ++i) {
    for (const Counts& part : lists) {
      const std::int64_t alone = search.bestAlone[indexOf(part, all_)];
      if (alone == 0) continue;
      Counts rest = lists[i];
      bool isWithin = true;
      for (std::size_t c = 0; c < all_.size(); ++c) isWithin = (rest[c] -= part[c]) >= 0 && isWithin;
      if (isWithin) mostOfRest[i] = std::max(mostOfRest[i], alone + mostOfRest[indexOf(rest, all_)]);
    }
  }
  search.mostOfRest = std::move(mostOfRest);
  if (search.mostOfRest.back() < batch_) return search.best;
  search.isKeeping = true;
  listAll();
  std::ranges::stable_sort(search.kept, [this](const Structure& a, const Structure& b) {
    const std::size_t ofA = indexOf(a.uses, all_), ofB = indexOf(b.uses, all_);
    return ofA != ofB ? ofA > ofB : a.samples > b.samples;
  });
  search.nextDevices.assign(search.kept.size(), search.kept.size());
  for (std::size_t i = search.kept.size(); i-- > 1;)
    search.nextDevices[i - 1] = search.kept[i - 1].uses == search.kept[i].uses ? search.nextDevices[i] : i;
  std::vector<std::size_t> chosen;
  combine(search, 0, all_, 0, chosen);
  return search.best;
}

}  // namespace evenkeel
