// SPDX-License-Identifier: GPL-3.0-or-later
// Prints how fast planner `optimal` finds and proves plans of the four clusters of issue 5, in CPU time of the process (so that
// other processes do not disturb it): bench_search [case ...], or
// bench_search cancel TIMES [case] (the last one), or
// bench_search whatif (128 devices, one node removed, from the last plan), or
// bench_search small TIMES (against all other planners on random small clusters), or
// bench_search more TIMES (random small clusters, and one device more), or
// bench_search eth (against eth on 256 devices, where it once was the faster one), or
// bench_search metis (planner metis on inputs of the size of recorded runs of the public one), or
// bench_search sailor [few] (clusters and profiles of the Sailor artifact). Global batch 1024, sequence 2048.
// Targets stand beside the figures.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/random.h"
#include "core/profile/analytic_profile.h"
#include "core/search/search.h"
#include "tests/bench/search_sailor.h"
#include "tests/support/reference_data.h"

namespace {

using namespace evenkeel;

struct Case {
  const char* cluster;
  const char* model;
  bool isFp16;
  double firstPlan, closedForm, reported;  // targets, seconds: first plan, closed-form gap <= 1 %, gap <= 4 %
};
constexpr Case kCases[] = {
    {"1x8:Ascend-910B2,1x8:Ascend-910B4", "gpt3-13b", false, 0.03, 1, 1},
    {"8x8:Ascend-910B2,8x8:Ascend-910B4", "gpt3-13b", false, 0.1, 2, 3},
    {"64x8:Ascend-910B2,64x8:Ascend-910B4", "gpt3-175b", false, 0.2, 2, 3},
    {"32x8:H100-80-SXM,32x8:A100-80-SXM,32x8:V100-32-SXM2,32x8:Ascend-910B4", "gpt3-175b", true, 0.5, 10, 15},
};
constexpr double kClosedFormGap = 0.01, kReportedGap = 0.04;

double cpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Watch final : SearchObserver {
  double begin = cpuSeconds(), firstPlan = 0, firstBound = 0, closedForm = 0, reported = 0;
  double near = 0, nearAt = 0;  // seconds of an iteration that are good enough, and when there was such a plan
  Seconds best, bound;
  [[nodiscard]] double now() const { return cpuSeconds() - begin; }
  void onPhase(std::string_view name) override {
    fmt::print("  {:8.3f} s  {}\n", now(), name);
    if (name == "bound") closedForm = now();  // it was proven just before
  }
  void onIncumbent(const Incumbent& incumbent) override {
    if (best == Seconds{}) firstPlan = now();
    best = incumbent.plan.predicted->iteration;
    if (best.value <= near && nearAt == 0) nearAt = now();
    print();
  }
  void onBound(Seconds seconds) override {
    if (bound == Seconds{}) firstBound = now();
    bound = seconds;
    print();
  }
  void print() {
    const double gap = best > Seconds{} ? 1 - bound / best : 1;
    fmt::print("  {:8.3f} s  plan {:.3f} s, bound {:.3f} s, gap {:.1f} %\n", now(), best.value, bound.value, 100 * gap);
    if (gap <= kReportedGap && reported == 0) reported = now();
  }
};

std::string reached(double seconds, double target) {
  return seconds > 0 ? fmt::format("{:.2f} s (target {} s)", seconds, target) : fmt::format("not reached (target {} s)", target);
}

void run(const Case& c) {
  fmt::print("{} {}\n", c.cluster, c.model);
  Problem problem{*parseClusterShorthand(c.cluster), *modelFromArgument(c.model), {}};
  TrainingChoice choice{.sequenceLength = 2048, .globalBatch = 1024};
  if (c.isFp16) choice.precision = Precision::Fp16;
  problem.training = resolveTraining(choice, problem.cluster, problem.model);
  const AnalyticProfile profile(problem.model, problem.training);
  Watch watch;
  const auto plan = (*plannerNamed("optimal"))->plan({problem, &profile, {.threads = 1}, {}}, watch, {});
  if (!plan) {
    fmt::print("  {}\n", plan.error().text());
    return;
  }
  const double closedFormGap = plan->search.value("closed_form_gap", 1.0);
  const double closedForm = closedFormGap <= kClosedFormGap ? watch.closedForm : 0;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("  first plan {}\n  first bound {:.3f} s (target 0.3 s)\n  closed-form gap <= 1 % {}; at the end {:.2f} %\n",
             reached(watch.firstPlan, c.firstPlan), watch.firstBound, reached(closedForm, c.closedForm), 100 * closedFormGap);
  fmt::print("  gap <= 4 % {}; at the end {:.1f} %\n  {:.2f} s in all, {} MiB at most\n\n", reached(watch.reported, c.reported),
             100 * plan->predicted->gap(), watch.now(), usage.ru_maxrss / 1024);
}

/// How long the planner takes to return after a request to stop, at random moments of a search of case `number`.
void measureCancelling(int times, int number) {
  const Case& c = kCases[number - 1];
  Problem problem{*parseClusterShorthand(c.cluster), *modelFromArgument(c.model), {}};
  TrainingChoice choice{.sequenceLength = 2048, .globalBatch = 1024};
  if (c.isFp16) choice.precision = Precision::Fp16;
  problem.training = resolveTraining(choice, problem.cluster, problem.model);
  const AnalyticProfile profile(problem.model, problem.training);
  const Planner& planner = **plannerNamed("optimal");
  SearchObserver nobody;
  const auto begin = std::chrono::steady_clock::now();
  if (!planner.plan({problem, &profile, {.threads = 1}, {}}, nobody, {})) return;
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
  const CounterRandom random(static_cast<std::uint64_t>(number), "cancelled");
  std::vector<double> delays;
  int late = 0, without = 0;
  for (int i = 0; i < times; ++i) {
    const auto moment = random.uniform(static_cast<std::uint64_t>(i)) * whole;
    std::stop_source source;
    double requested = 0;
    std::jthread stopper([&](std::stop_token over) {
      std::mutex mutex;
      std::condition_variable_any ended;
      std::unique_lock lock(mutex);
      if (ended.wait_for(lock, over, moment, [] { return false; }) || over.stop_requested()) return;
      requested = cpuSeconds();
      source.request_stop();
    });
    const auto plan = planner.plan({problem, &profile, {.threads = 1}, {}}, nobody, source.get_token());
    const double ended = cpuSeconds();
    stopper.request_stop();
    stopper.join();
    if (requested == 0) {
      ++late;
      continue;
    }
    if (!plan) ++without;
    delays.push_back(ended - requested);
    if (delays.back() > 0.05) fmt::print("  stopped after {:.3f} s, returned {:.0f} ms later\n", moment.count(), 1e3 * delays.back());
  }
  std::ranges::sort(delays);
  if (delays.empty()) return;
  fmt::print("{} {}: {:.1f} s; stopped {} times ({} had ended before, {} had no plan yet); returned after {:.1f} ms of CPU time (median), "
             "{:.1f} (99 of 100), {:.1f} (longest; target 50)\n",
             c.cluster, c.model, whole.count(), delays.size(), late, without, 1e3 * delays[delays.size() / 2], 1e3 * delays[delays.size() * 99 / 100],
             1e3 * delays.back());
}

/// Up to 16 devices of one to three types behind unlike links, small models, any batch.
Problem smallProblem(std::uint64_t index) {
  const CounterRandom random(index, "small clusters");
  std::uint64_t at = 0;
  const auto below = [&](std::uint64_t bound) { return random.below(at++, bound); };
  const std::vector<std::string> types = {"A100-80-SXM", "V100-32-SXM2", "Ascend-910B2", "Ascend-910B4"};
  std::string text;
  for (std::uint64_t part = 0, parts = 1 + below(3); part < parts; ++part)
    text += fmt::format("{}{}x{}:{}", part > 0 ? "," : "", 1 + below(2), 1 + below(4), types[below(4)]);
  Cluster cluster = *parseClusterShorthand(text);
  for (Node& node : cluster.nodes) {
    node.nic.bandwidth = (below(3) == 0 ? 0.04 : 0.2 + random.uniform(at++)) * node.nic.bandwidth;
    node.nicPerDevice = below(2) == 0;
  }
  const std::vector<std::string> models = {"gpt3-350m", "gpt3-1.3b", "gpt3-2.7b", "llama2-7b"};
  const std::vector<std::int64_t> batches = {1, 2, 7, 16, 61, 128};
  Problem problem{std::move(cluster), *modelFromArgument(models[below(4)]), {}};
  problem.training = resolveTraining({.globalBatch = batches[below(6)]}, problem.cluster, problem.model);
  return problem;
}

/// Where any other planner's plan is faster.
void compareSmall(int times) {
  int beaten = 0, feasible = 0;
  double worst = 1, seconds = 0;
  for (int i = 0; i < times; ++i) {
    const Problem problem = smallProblem(static_cast<std::uint64_t>(i));
    const AnalyticProfile profile(problem.model, problem.training);
    SearchObserver nobody;
    const SearchTask task{problem, &profile, {.threads = 1}, {}};
    const double begin = cpuSeconds();
    const auto ours = (*plannerNamed("optimal"))->plan(task, nobody, {});
    seconds += cpuSeconds() - begin;
    if (!ours) continue;
    ++feasible;
    std::string by;
    double ratio = 1;
    for (const Planner& planner : planners()) {
      if (planner.name == "optimal") continue;
      const auto other = planner.plan(task, nobody, {});
      if (!other || ours->predicted->iteration / other->predicted->iteration <= ratio * (1 + 1e-9)) continue;
      ratio = ours->predicted->iteration / other->predicted->iteration;
      by = planner.name;
    }
    if (by.empty()) continue;
    ++beaten;
    worst = std::max(worst, ratio);
    fmt::print("  cluster {}: {} is faster by a factor of {:.4f}\n", i, by, ratio);
  }
  fmt::print("optimal is beaten in {} of {} (at worst by a factor of {:.3f}); {:.2f} s of CPU time a problem\n", beaten, feasible,
             worst, seconds / times);
}

/// Where a device more makes the plan slower.
void compareMore(int times) {
  int slower = 0, feasible = 0;
  double worst = 1;
  const std::vector<std::string> types = {"V100-32-SXM2", "H100-80-SXM", "A100-80-SXM", "Ascend-910B4"};
  const std::vector<std::string> models = {"gpt3-350m", "gpt3-1.3b", "gpt3-2.7b"};
  const std::vector<std::int64_t> batches = {1, 3, 7, 16, 32};
  for (int i = 0; i < times; ++i) {
    const CounterRandom random(static_cast<std::uint64_t>(i), "one more device");
    std::uint64_t at = 0;
    const auto below = [&](std::uint64_t bound) { return random.below(at++, bound); };
    std::vector<std::pair<std::uint64_t, std::string>> parts;
    for (std::uint64_t part = 0, count = 1 + below(3); part < count; ++part) parts.emplace_back(1 + below(4), types[below(4)]);
    const std::string model = models[below(3)];
    const TrainingChoice choice{.sequenceLength = 1024 * static_cast<std::int64_t>(1 + below(2)),
                                .globalBatch = batches[below(5)],
                                .precision = Precision::Fp16};
    const auto timeOf = [&](std::string& text) -> std::optional<Seconds> {
      text.clear();
      for (const auto& [count, type] : parts) text += fmt::format("{}1x{}:{}", text.empty() ? "" : ",", count, type);
      Problem problem{*parseClusterShorthand(text), *modelFromArgument(model), {}};
      problem.training = resolveTraining(choice, problem.cluster, problem.model);
      const AnalyticProfile profile(problem.model, problem.training);
      SearchObserver nobody;
      const auto plan = (*plannerNamed("optimal"))->plan({problem, &profile, {.threads = 1}, {}}, nobody, {});
      return plan ? std::optional(plan->predicted->iteration) : std::nullopt;
    };
    std::string few, many;
    const auto before = timeOf(few);
    if (below(2) == 0) ++parts[below(parts.size())].first;
    else parts.emplace_back(1, types[below(4)]);
    const auto after = timeOf(many);
    if (!before) continue;
    ++feasible;
    const double ratio = after ? *after / *before : 1e9;
    if (ratio <= 1 + 1e-9) continue;
    ++slower;
    worst = std::max(worst, ratio);
    fmt::print("  {} -> {}, {}, batch {}: slower by a factor of {:.4f}\n", few, many, model, *choice.globalBatch, ratio);
  }
  fmt::print("a device more is slower in {} of {} (at worst by a factor of {:.3f})\n", slower, feasible, worst);
}

void compareEth() {
  Problem problem{*parseClusterShorthand("16x8:Ascend-910B2,16x8:Ascend-910B4"), *modelFromArgument("gpt3-175b"), {}};
  problem.training = resolveTraining({.sequenceLength = 2048, .globalBatch = 1024, .precision = Precision::Fp16}, problem.cluster,
                                     problem.model);
  const AnalyticProfile profile(problem.model, problem.training);
  SearchObserver nobody;
  for (const char* planner : {"optimal", "eth"}) {
    const double begin = cpuSeconds();
    const auto plan = (*plannerNamed(planner))->plan({problem, &profile, {.threads = 1}, {}}, nobody, {});
    fmt::print("{}: {:.3f} s an iteration, {:.2f} s of search\n", planner, plan ? plan->predicted->iteration.value : 0.0,
               cpuSeconds() - begin);
  }
}

/// Recorded seconds of public Metis: ../shared/design/baseline-metis.md.
void compareMetis() {
  struct Recorded {
    const char* cluster;
    const char* model;
    int layers;
    const char* permute;
    double seconds;
  };
  for (const Recorded& c : {Recorded{"2x4:A100-80-SXM,2x4:V100-32-SXM2", "gpt3-1.3b", 16, "6", 2.7},
                            Recorded{"4x4:A100-80-SXM,4x4:V100-32-SXM2", "gpt3-2.7b", 32, "4", 10},
                            Recorded{"4x4:A100-80-SXM,4x4:V100-32-SXM2", "gpt3-2.7b", 32, "6", 54}}) {
    Problem problem{*parseClusterShorthand(c.cluster), *modelFromArgument(c.model), {}};
    problem.model.layers = c.layers;
    problem.training = resolveTraining({.sequenceLength = 2048, .globalBatch = 128, .precision = Precision::Fp16},
                                       problem.cluster, problem.model);
    const AnalyticProfile profile(problem.model, problem.training);
    SearchObserver nobody;
    const double begin = cpuSeconds();
    const auto plan = (*plannerNamed("metis"))->plan({problem, &profile, {.threads = 1}, {{"permute", c.permute}}}, nobody, {});
    const double seconds = cpuSeconds() - begin;
    fmt::print("{}, {} layers, permute {}: {:.3f} s, recorded {} s: {:.0f} times as fast ({})\n", c.cluster, c.layers + 2,
               c.permute, seconds, c.seconds, c.seconds / seconds, plan ? "a plan" : plan.error().what);
  }
}

/// What is known how soon when a node of the 128 devices is gone, from the last plan and from nothing.
void whatIf() {
  const Case& c = kCases[1];
  Problem problem{*parseClusterShorthand(c.cluster), *modelFromArgument(c.model), {}};
  problem.training = resolveTraining({.sequenceLength = 2048, .globalBatch = 1024}, problem.cluster, problem.model);
  const AnalyticProfile profile(problem.model, problem.training);
  SearchObserver nobody;
  const auto last = (*plannerNamed("optimal"))->plan({problem, &profile, {.threads = 1}, {}}, nobody, {});
  for (const std::size_t gone : {std::size_t{0}, problem.cluster.nodes.size() - 1}) {
    Problem less = problem;
    less.cluster.nodes.erase(less.cluster.nodes.begin() + static_cast<std::ptrdiff_t>(gone));
    fmt::print("without {}, from nothing:\n", problem.cluster.nodes[gone].name);
    Watch cold;
    const auto found = (*plannerNamed("optimal"))->plan({less, &profile, {.threads = 1}, {}}, cold, {});
    fmt::print("from the last plan:\n");
    Watch warm;
    warm.near = 1.01 * found->predicted->iteration.value;
    const auto again = (*plannerNamed("optimal"))->plan({less, &profile, {.threads = 1}, {}, &*last}, warm, {});
    fmt::print("  within 1 % of {:.3f} s after {:.3f} s (target 0.2 s); at the end {:.3f} s\n\n",
               found->predicted->iteration.value, warm.nearAt, again->predicted->iteration.value);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what there is stays, whatever happens to the rest
  if (argc >= 2 && std::string(argv[1]) == "sailor") {
    const auto data = referenceData("sailor");
    if (!data) fmt::print(stderr, "error: no reference data; EVENKEEL_REFERENCE_DATA names no folder that holds sailor/\n");
    else compareSailor(data->parent_path(), argc > 2);
    return data ? 0 : 2;
  }
  if (argc == 2 && std::string(argv[1]) == "whatif") {
    whatIf();
    return 0;
  }
  if (argc == 2 && std::string(argv[1]) == "eth") {
    compareEth();
    return 0;
  }
  if (argc == 2 && std::string(argv[1]) == "metis") {
    compareMetis();
    return 0;
  }
  if (argc == 3 && std::string(argv[1]) == "more") {
    compareMore(std::atoi(argv[2]));
    return 0;
  }
  if (argc == 3 && std::string(argv[1]) == "small") {
    compareSmall(std::atoi(argv[2]));
    return 0;
  }
  if ((argc == 3 || argc == 4) && std::string(argv[1]) == "cancel") {
    measureCancelling(std::atoi(argv[2]), std::clamp(argc == 4 ? std::atoi(argv[3]) : 4, 1, 4));
    return 0;
  }
  for (int i = 0; i < 4; ++i) {
    bool isWanted = argc == 1;
    for (int a = 1; a < argc; ++a) isWanted = isWanted || std::atoi(argv[a]) == i + 1;
    if (isWanted) run(kCases[i]);
  }
  return 0;
}
