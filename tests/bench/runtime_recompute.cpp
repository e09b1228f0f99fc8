// SPDX-License-Identifier: GPL-3.0-or-later
// Prints what recomputation chosen per stage saves: bench_runtime_recompute. Two stages of unlike speed, of which the fast one holds two
// micro-batches and has time to spare. Iterations are rehearsed (virtual devices, medians), peaks measured in training: the most that the
// tensors of any rank held.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "core/cost/evaluate.h"
#include "core/profile/analytic_profile.h"
#include "tests/runtime/worker_run.h"
#include "tests/support/plans.h"

namespace {

using namespace evenkeel;

constexpr std::int64_t kSequence = 256;

Model model() {
  Model model = *modelFromArgument("tiny-gpt");
  model.layers = 4;
  model.hidden = 256;
  model.heads = model.kvHeads = 8;
  model.headDim = 32;
  model.ffn = 1024;
  model.context = kSequence;
  return model;
}

struct Measured {
  double iteration = 0, peak = 0;  // ms, MB
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

std::vector<RankOutcome> outcomesOf(const Plan& plan, std::int64_t steps, bool rehearse) {
  WorkerRun run({.plan = plan, .steps = steps, .peerSeconds = 120, .learningRate = 1e-3, .rehearse = rehearse});
  run.start({{0, {{"OPENBLAS_CORETYPE", ""}}}, {1, {{"OPENBLAS_CORETYPE", ""}}}});
  return run.finish(std::chrono::seconds(300));
}

Measured measure(const std::vector<std::vector<Op>>& opsOfStages) {
  Plan plan = planOf(*parseClusterShorthand("1x1:cpu@0.3,1x1:cpu@0.2"), model(), {{48, 2, {"cpu-0/0", "cpu-1/0"}, {0, 5, 10}}});
  plan.training.sequenceLength = kSequence;
  for (std::size_t s = 0; s < opsOfStages.size(); ++s) {
    Stage& stage = plan.pipelines[0].stages[s];
    if (!opsOfStages[s].empty()) stage.recompute = {{stage.units, opsOfStages[s]}};
  }
  const AnalyticProfile profile(plan.model, plan.training);
  const Plan predicted = evaluate(plan, profile).plan;
  Measured measured;
  for (const RankOutcome& rank : outcomesOf(predicted, 3, true))
    measured.iteration = std::max(measured.iteration, median(rank.ofSteps("iteration_ms")));
  for (const RankOutcome& rank : outcomesOf(plan, 2, false)) {
    if (const Json* const last = rank.last("step")) measured.peak = std::max(measured.peak, last->at("tensor_bytes").get<double>() * 1e-6);
    else fmt::print("{}\n", rank.log);
  }
  return measured;
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::vector<Op> scores = {Op::Score, Op::Softmax, Op::AttentionDropout, Op::Context, Op::Activation};
  std::vector<Op> all;
  for (int op = 0; op < kOpCount; ++op) all.push_back(static_cast<Op>(op));
  const struct {
    const char* name;
    std::vector<std::vector<Op>> ops;
  } variants[] = {{"nothing", {{}, {}}}, {"scores and activations, in both", {scores, scores}}, {"everything, in both", {all, all}}, {"per stage: everything, nothing", {all, {}}}};
  Measured first;
  for (const auto& [name, ops] : variants) {
    const Measured measured = measure(ops);
    if (first.iteration == 0) first = measured;
    fmt::print("{:<32} iteration {:8.1f} ms ({:+5.1f} %), peak {:7.1f} MB ({:+5.1f} %)\n", name, measured.iteration, 100 * (measured.iteration / first.iteration - 1), measured.peak,
               100 * (measured.peak / first.peak - 1));
  }
  return 0;
}
