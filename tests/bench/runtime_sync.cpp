// SPDX-License-Identifier: GPL-3.0-or-later
// Prints what the three gradient syncs cost real workers: bench_runtime [steps]. Four ranks in two pipelines, cut and sharded
// differently; once with many small tensors, where calls dominate, once with few large ones, where padding does. sync_ms is the
// median over the steps of the slowest rank, in wall time: quiet machines only. Then what the
// runtime itself costs on two stages, in CPU time of all threads of a worker: whatever a step spends outside of forwards, backwards and the
// optimizer; and the CPU time until a worker is ready.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "tests/runtime/worker_run.h"
#include "tests/support/plans.h"

namespace {

using namespace evenkeel;

Model model(int layers, std::int64_t hidden) {
  Model model = *modelFromArgument("tiny-gpt");
  model.layers = layers;
  model.hidden = hidden;
  model.heads = model.kvHeads = 4;
  model.headDim = hidden / 4;
  model.ffn = 4 * hidden;
  model.context = 32;
  return model;
}

/// Two stages, the second of two shards, beside one device for all.
Plan unlikePlan(const Model& model, GradientSync sync) {
  const int units = model.unitCount();
  Plan plan = planOf(*parseClusterShorthand("1x4:cpu"), model,
                     {{2, 1, {"cpu-0/0", "cpu-0/1"}, {0, units / 2, units}}, {1, 1, {"cpu-0/3"}, {0, units}}});
  Stage& stage = plan.pipelines[0].stages[1];
  stage.tp = 2;
  stage.devices.push_back({0, 2});
  plan.training.gradientSync = sync;
  plan.training.zeroStage = 0;
  return plan;
}

double median(std::vector<double> values) {
  if (values.size() > 2) values.erase(values.begin(), values.begin() + 2);  // the first steps warm up
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

std::vector<RankOutcome> outcomesOf(const Plan& plan, std::int64_t steps) {
  WorkerRun run({.plan = plan, .steps = steps});
  std::map<int, WorkerRun::Environment> ownKernels;  // as on a node
  for (std::size_t rank = 0; rank < plan.usedDevices().size(); ++rank) ownKernels[static_cast<int>(rank)] = {{"OPENBLAS_CORETYPE", ""}};
  run.start(ownKernels);
  return run.finish(std::chrono::seconds(300));
}

void compareModes(const char* title, const Model& model, std::int64_t steps) {
  fmt::print("{}: {} layers, hidden {}\n", title, model.layers, model.hidden);
  for (const auto& [word, sync] : gradientSyncWords()) {
    const auto outcomes = outcomesOf(unlikePlan(model, sync), steps);
    double slowest = 0, iteration = 0;
    std::int64_t calls = 0, bytes = 0, held = 0;
    for (const RankOutcome& rank : outcomes) {
      slowest = std::max(slowest, median(rank.ofSteps("sync_ms")));
      iteration = std::max(iteration, median(rank.ofSteps("iteration_ms")));
      const Json* const last = rank.last("step");
      if (last == nullptr) continue;
      calls += last->at("sync_calls").get<std::int64_t>();
      bytes += last->at("sync_bytes").get<std::int64_t>();
      held += last->at("state_bytes").at("sync").get<std::int64_t>();
    }
    fmt::print("  {:<7} sync {:8.2f} ms of {:8.2f} ms, {:4} calls, {:8.2f} MB sent, {:7.2f} MB held\n", word, slowest, iteration,
               calls, static_cast<double>(bytes) * 1e-6, static_cast<double>(held) * 1e-6);
  }
}

void pipelineOverhead(std::int64_t steps) {
  Model model = ::model(4, 512);
  model.context = 128;
  const Plan plan = planOf(*parseClusterShorthand("1x2:cpu"), model, {{16, 4, {"cpu-0/0", "cpu-0/1"}, {0, 5, 10}}});
  for (const RankOutcome& rank : outcomesOf(plan, steps)) {
    const double cpu = median(rank.ofSteps("cpu_ms")), computeCpu = median(rank.ofSteps("compute_cpu_ms"));
    fmt::print("  stage of 2: {:.2f} ms CPU a step, {:.2f} % of it outside compute; ready after {:.0f} ms CPU\n", cpu, 100 * (1 - computeCpu / cpu),
               rank.last("ready")->at("cpu_ms").get<double>());
    const double iteration = median(rank.ofSteps("iteration_ms")), compute = median(rank.ofSteps("compute_ms"));
    fmt::print("    iteration {:.2f} ms, compute {:.2f}, p2p {:.2f}, bubble {:.2f}, sync {:.2f}, optimizer {:.2f}\n",
               iteration, compute, median(rank.ofSteps("p2p_ms")), median(rank.ofSteps("bubble_ms")),
               median(rank.ofSteps("sync_ms")), median(rank.ofSteps("optimizer_ms")));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::int64_t steps = argc > 1 ? std::stoll(argv[1]) : 20;
  compareModes("calls dominate", model(24, 32), steps);
  compareModes("padding dominates", model(2, 256), steps);
  fmt::print("two stages, 4 micro-batches\n");
  pipelineOverhead(std::min<std::int64_t>(steps, 10));
  return 0;
}
