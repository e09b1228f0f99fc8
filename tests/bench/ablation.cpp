// SPDX-License-Identifier: GPL-3.0-or-later
// What each optimisation of planner eth is worth (algorithms.md 5.1; the paper's search-time ablation): search effort in CPU time
// of the process, and the plan that comes out.   bench_ablation [cluster] [model] [global batch] [time limit, s]
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <vector>

#include "core/base/words.h"
#include "tests/core/search/problems.h"

namespace {

using namespace evenkeel;

Seconds processCpuTime() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

struct Row {
  const char* name;
  PlannerOptions options;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string cluster = argc > 1 ? argv[1] : "8x8:Ascend-910B2,8x8:Ascend-910B4";
  const std::string model = argc > 2 ? argv[2] : "gpt3-13b";
  const std::int64_t batch = argc > 3 ? std::atoll(argv[3]) : 1024;
  const Seconds limit{argc > 4 ? std::atof(argv[4]) : 600.0};
  const Problem problem = problemOf(cluster, model, batch);
  const std::vector<Row> rows = {
      {"everything on", {}},
      {"cache off", {{"cache", "off"}}},
      {"skip off", {{"skip", "off"}}},
      {"alpha 0.5", {{"alpha", "0.5"}}},
      {"alpha 1", {{"alpha", "1"}}},
      {"alpha 2", {{"alpha", "2"}}},
      {"order off", {{"order", "generated"}}},
      {"dp off", {{"dp", "off"}}},
      {"recompute global", {{"recompute", "global"}}},
      {"everything off", {{"cache", "off"}, {"skip", "off"}, {"order", "generated"}, {"dp", "off"}}},
  };
  fmt::print("{}, {}, global batch {}; at most {} s each\n", cluster, model, batch, limit.value);
  fmt::print("{:<17} {:>9} {:>7} {:>13} {:>10} {:>10}  ended by\n", "", "CPU s", "x", "iteration ms", "skipped", "cached");
  double first = 0;
  for (const Row& row : rows) {
    const Seconds before = processCpuTime();
    const auto plan = planWith("eth", problem, {.budget = {.timeLimit = limit}, .options = row.options});
    const double cpu = (processCpuTime() - before).value;
    if (first == 0) first = cpu;
    if (!plan) {
      fmt::print("{:<17} {:>9.2f} {:>7.1f}  {}\n", row.name, cpu, cpu / first, plan.error().text());
      continue;
    }
    std::int64_t skipped = 0;
    for (const auto& [reason, count] : plan->search.at("pruned").items()) {
      if (reason.starts_with("skipped")) skipped += count.get<std::int64_t>();
    }
    fmt::print("{:<17} {:>9.2f} {:>7.1f} {:>13.2f} {:>10} {:>10}  {}\n", row.name, cpu, cpu / first,
               milliseconds(plan->predicted->iteration), skipped, plan->search.at("cached").get<std::int64_t>(),
               plan->search.at("stopped").get<std::string>());
    std::fflush(stdout);
  }
  return 0;
}
