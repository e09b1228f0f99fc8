// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/session.h"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cassert>
#include <limits>

#include "core/base/words.h"
#include "core/cost/bound.h"
#include "core/cost/stage_time.h"
#include "core/search/warm_start.h"

namespace evenkeel {
namespace {

/// Candidates that see the same incumbent: large enough for many threads, small enough that pruning bites soon.
constexpr std::size_t kBatch = 64;
constexpr Seconds kReportEvery{0.1};
/// More of them only wait for each other.
constexpr int kMostThreads = 64;

/// So that what fits leaves `reserve` free, in place of what every plan leaves.
Cluster withReserve(Cluster cluster, std::optional<double> reserve) {
  if (!reserve) return cluster;
  for (DeviceType& type : cluster.deviceTypes)
    type.memory =
        Bytes{static_cast<std::int64_t>(static_cast<double>(type.memory.value) * (1 - *reserve) / (1 - kMemoryReserve))};
  return cluster;
}

}  // namespace

struct SearchSession::Threads {
  explicit Threads(int asked) : Threads(std::min(asked, kMostThreads), nullptr) {}
  Threads(int count, std::nullptr_t) : arena(count > 0 ? count : tbb::task_arena::automatic) {
    if (count > 0)
      limit.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(count));  // also beyond the cores
  }
  std::optional<tbb::global_control> limit;
  tbb::task_arena arena;
};

struct SearchSession::Assessment {
  bool made = false, slower = false, forbidden = false;
  std::optional<MemoryLack> lack;
  std::optional<Seconds> time;
  std::vector<Pipeline> pipelines;
};

SearchSession::SearchSession(std::string planner, const SearchTask& task, SearchObserver& observer, std::stop_token stop,
                             Constraints constraints)
    : planner_(std::move(planner)),
      task_(task),
      observer_(observer),
      stop_(std::move(stop)),
      begin_(std::chrono::steady_clock::now()),
      constraints_(std::move(constraints)),
      limits_(limitsOf(task.problem, constraints_)),
      cluster_(withReserve(task.problem.cluster, constraints_.reserve)),
      model_(cluster_, task.problem.model, task.problem.training, *task.profile),
      workBound_(problemLowerBound(model_)),
      lowerBound_(workBound_),
      threads_(std::make_unique<Threads>(task.budget.threads)),
      incumbentTime_{std::numeric_limits<double>::infinity()} {
  if (lowerBound_.value > 0) observer_.onBound(lowerBound_);
}

SearchSession::~SearchSession() = default;

Seconds SearchSession::elapsed() const {
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count()};
}

bool SearchSession::stopped() const {
  return stop_.stop_requested() || (task_.budget.timeLimit && elapsed() >= *task_.budget.timeLimit) ||
         (task_.budget.effort && counters_.evaluated >= *task_.budget.effort);
}

Budget SearchSession::budgetLeft() const {
  Budget left = task_.budget;
  if (left.timeLimit) *left.timeLimit = std::max(Seconds{}, *left.timeLimit - elapsed());
  if (left.effort) *left.effort = std::max<std::int64_t>(0, *left.effort - counters_.evaluated);
  return left;
}

void SearchSession::parallel(std::size_t count, const std::function<void(std::size_t)>& work) const {
  threads_->arena.execute([&] {
    tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) {
      if (!stopped()) work(i);
    });
  });
}

SearchSession::Assessment SearchSession::assess(const std::vector<Pipeline>& pipelines, bool evenIfStopped) const {
  Assessment result{.made = true};
  const auto ends = [&] { return !evenIfStopped && stopped(); };
  for (const Pipeline& pipeline : pipelines) {
    if (pipelineLowerBound(pipelineTimes(model_, pipeline)) >= incumbentTime_) {
      result.slower = true;
      return result;
    }
    if (ends()) return result;
  }
  result.lack = worstLack(model_, pipelines);
  if (!result.lack && !ends()) result.time = iterationTime(model_, pipelines);
  return result;
}

void SearchSession::consider(std::size_t count, const Make& make, std::string_view finder) {
  for (std::size_t begin = 0; begin < count && !stopped(); begin += kBatch) {
    std::vector<Assessment> batch(std::min(kBatch, count - begin));
    parallel(batch.size(), [&](std::size_t i) {
      std::vector<Pipeline> pipelines = make(begin + i);
      if (pipelines.empty()) return;
      batch[i].forbidden = constraints_.any() && !constraints_.allow(pipelines);
      if (batch[i].forbidden) return;
      batch[i] = assess(pipelines);
      batch[i].pipelines = std::move(pipelines);
    });
    Assessment* best = nullptr;
    for (Assessment& result : batch) {
      countOutcome(result);
      if (result.time && (!best || *result.time < *best->time)) best = &result;
    }
    if (best && *best->time < incumbentTime_) accept(std::move(best->pipelines), *best->time, finder);
    reportCounters(false);
  }
}

void SearchSession::considerStart() {
  if (task_.start == nullptr) return;
  phase("last plan");
  consider(
      1, [this](std::size_t) { return carriedOver(*task_.start, task_.problem); }, "what is left of the last plan");
}

void SearchSession::countOutcome(Assessment& result) {
  if (result.forbidden) {
    ++counters_.pruned["against the planner options"];
    return;
  }
  if (!result.made || result.slower) {
    ++counters_.pruned["slower than the incumbent"];
    return;
  }
  ++counters_.evaluated;
  if (!result.lack) return;
  ++counters_.pruned["out of memory"];
  if (incumbent_.empty() && (!closestLack_ || result.lack->lack < closestLack_->lack)) {
    closestLack_ = result.lack;
    closest_ = std::move(result.pipelines);
  }
}

void SearchSession::considerLate(std::vector<Pipeline> pipelines, std::string_view finder) {
  Assessment result = assess(pipelines, true);
  result.pipelines = std::move(pipelines);
  countOutcome(result);
  if (result.time && *result.time < incumbentTime_) accept(std::move(result.pipelines), *result.time, finder);
}

void SearchSession::accept(std::vector<Pipeline> pipelines, Seconds time, std::string_view finder) {
  incumbent_ = std::move(pipelines);
  incumbentTime_ = time;
  if (isApart_) return;
  const Seconds found = elapsed();
  Json entry;
  entry["seconds"] = rounded(found.value);
  entry["iteration_ms"] = rounded(milliseconds(time));
  incumbents_.push_back(std::move(entry));
  incumbentPlan_ = evaluated(incumbent_).plan;
  observer_.onIncumbent({incumbentPlan_, found, std::string(finder)});
}

void SearchSession::improveApart(std::vector<Pipeline> start, const std::function<void()>& improve, std::string_view finder) {
  assert(!isApart_);
  std::vector<Pipeline> before = std::exchange(incumbent_, {});
  const Seconds timeBefore = std::exchange(incumbentTime_, Seconds{std::numeric_limits<double>::infinity()});
  isApart_ = true;
  consider(
      1, [&](std::size_t) { return start; }, finder);
  if (!incumbent_.empty()) improve();
  isApart_ = false;
  std::vector<Pipeline> found = std::exchange(incumbent_, std::move(before));
  const Seconds time = std::exchange(incumbentTime_, timeBefore);
  if (time < incumbentTime_) accept(std::move(found), time, finder);
}

void SearchSession::raiseBound(Seconds bound) {
  if (bound <= lowerBound_) return;
  lowerBound_ = bound;
  observer_.onBound(lowerBound_);
}

void SearchSession::reportCounters(bool atEnd) {
  const Seconds now = elapsed();
  if (!atEnd && now - lastReport_ < kReportEvery) return;
  lastReport_ = now;
  observer_.onCounters(counters_);
}

Plan SearchSession::planOf(std::vector<Pipeline> pipelines) const {
  Plan plan;
  plan.cluster = task_.problem.cluster;
  plan.model = task_.problem.model;
  plan.training = task_.problem.training;
  plan.pipelines = std::move(pipelines);
  return plan;
}

Evaluation SearchSession::evaluated(std::vector<Pipeline> pipelines) const {
  Evaluation evaluation =
      constraints_.reserve
          ? evaluate(CostModel(task_.problem.cluster, task_.problem.model, task_.problem.training, *task_.profile),
                     planOf(std::move(pipelines)), lowerBound_, false)
          : evaluate(model_, planOf(std::move(pipelines)), lowerBound_, false);
  assert(evaluation.valid());
  return evaluation;
}

Error SearchSession::whyNone() const {
  if (!closestLack_ && constraints_.any()) {
    std::string options;
    for (const std::string& option : constraints_.given) options += (options.empty() ? "" : " ") + option;
    return invalidInput("--planner-option " + options, "leaves no layout of these devices", "leave out or widen one of them");
  }
  if (!closestLack_)
    return infeasible(planner_, "no layout of these devices holds the model", "draw devices that have the precision");
  const Stage& stage = closest_[closestLack_->pipeline].stages[closestLack_->stage];
  const DeviceId device = stage.devices[closestLack_->replica * static_cast<std::size_t>(stage.tp)];
  return infeasible(fmt::format("{}, {} {}", placeOf(closestLack_->pipeline, closestLack_->stage),
                                model_.cluster().typeOf(device).name, model_.cluster().nameOf(device)),
                    fmt::format("lacks {:.2f} GiB{} in the layout that comes closest", gib(closestLack_->lack),
                                !stage.recompute.empty() ? " even with full recomputation"
                                : limits_.recompute      ? ""
                                                         : " even with micro-batches of 1"));
}

Result<Plan> SearchSession::finish(std::string_view criterion) {
  reportCounters(true);
  const bool cancelled = stop_.stop_requested();
  std::string why(criterion);
  if (cancelled) why = "stop request";
  else if (task_.budget.timeLimit && elapsed() >= *task_.budget.timeLimit) why = "time limit";
  else if (task_.budget.effort && counters_.evaluated >= *task_.budget.effort) why = "effort";
  if (incumbent_.empty()) {
    if (why != criterion)
      return Error{Error::Code::Cancelled, planner_, fmt::format("ended by {} before there was a plan", why), "search longer"};
    return whyNone();
  }
  Plan plan = std::move(incumbentPlan_);
  plan.predicted->lowerBound = lowerBound_;
  plan.inputsSha256 = inputsHash(plan.cluster, plan.model, plan.training);
  plan.search["planner"] = planner_;
  plan.search["options"] = Json::object();
  for (const auto& [name, value] : task_.options) plan.search["options"][name] = value;
  plan.search["seed"] = task_.budget.seed;
  plan.search["seconds"] = rounded(elapsed().value);
  plan.search["evaluated"] = counters_.evaluated;
  plan.search["cached"] = counters_.cached;
  plan.search["pruned"] = Json::object();
  for (const auto& [reason, count] : counters_.pruned) plan.search["pruned"][reason] = count;
  plan.search["stopped"] = why;
  if (lowerBound_ > workBound_) plan.search[kWorkBoundField] = rounded(milliseconds(workBound_));
  for (const auto& [key, value] : notes_.items()) plan.search[key] = value;
  plan.search["incumbents"] = incumbents_;
  return plan;
}

Result<std::int64_t> integerOption(const PlannerOptions& options, const std::string& name, std::int64_t otherwise) {
  const auto found = options.find(name);
  if (found == options.end()) return otherwise;
  const auto value = parseNumber<std::int64_t>(found->second);
  if (!value || *value < 1)
    return invalidInput("--planner-option " + name, fmt::format("is \"{}\"", found->second),
                        "expected a whole number, at least 1");
  return *value;
}

Result<void> checkTask(const std::string& planner, std::span<const PlannerOptionInfo> known, const SearchTask& task) {
  for (const auto& [name, value] : task.options) {
    if (std::ranges::find(known, name, &PlannerOptionInfo::name) != known.end()) continue;
    std::string names;
    for (const PlannerOptionInfo& option : known) names += (names.empty() ? "" : ", ") + option.name + "=" + option.values;
    return invalidInput("--planner-option " + name, fmt::format("planner {} has no such option", planner), "known: " + names);
  }
  const Problem& problem = task.problem;
  if (problem.model.position == Position::Learned && problem.training.sequenceLength > problem.model.context) {
    return invalidInput("--sequence-length",
                        fmt::format("{} is longer than the {} learned positions of {}", problem.training.sequenceLength,
                                    problem.model.context, problem.model.name),
                        fmt::format("at most {}", problem.model.context));
  }
  if (limitsOf(problem).devices.empty()) {
    return invalidInput("--precision", fmt::format("no device of the cluster has {}", name(problem.training.precision)),
                        "choose fp16 or fp32");
  }
  return {};
}

Result<Constraints> checkConstrainedTask(const std::string& planner, std::span<const PlannerOptionInfo> known,
                                         const SearchTask& task) {
  if (auto checked = checkTask(planner, known, task); !checked) return checked.error();
  auto constraints = constraintsFrom(task.options, task.problem.cluster);
  if (constraints && limitsOf(task.problem, *constraints).devices.empty())
    return invalidInput("--planner-option exclude", "leaves no device that has the precision", "exclude fewer");
  return constraints;
}

}  // namespace evenkeel
