// SPDX-License-Identifier: GPL-3.0-or-later
// bench_evaluate: CPU time of the cost model. One evaluation with simulation of 1024 devices, 96 layers and 1000 micro-batches a
// pipeline; and plans of 16 devices a second. The lower of several runs; nothing is asserted.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "core/cost/bound.h"
#include "core/cost/evaluate.h"
#include "core/profile/analytic_profile.h"

namespace {

using namespace evenkeel;

double cpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Pipelines of `stages` single devices, taken in order; local batches differ, so that no two are simulated as one.
Plan planOf(const std::string& cluster, const std::string& model, int stages, std::int64_t microBatches) {
  Plan plan;
  plan.cluster = *parseClusterShorthand(cluster);
  plan.model = *modelFromArgument(model);
  plan.training.sequenceLength = 2048;
  plan.training.precision = Precision::Fp16;
  const std::vector<DeviceId> devices = plan.cluster.devices();
  for (std::size_t first = 0; first + static_cast<std::size_t>(stages) <= devices.size();
       first += static_cast<std::size_t>(stages)) {
    Pipeline pipeline;
    pipeline.localBatch = microBatches + static_cast<std::int64_t>(plan.pipelines.size());
    const int units = plan.model.unitCount();
    for (int s = 0; s < stages; ++s) {
      pipeline.stages.push_back(
          {.devices = {devices[first + static_cast<std::size_t>(s)]}, .units = {units * s / stages, units * (s + 1) / stages}});
    }
    plan.training.globalBatch += pipeline.localBatch;
    plan.pipelines.push_back(std::move(pipeline));
  }
  return plan;
}

template <class Work>
double lowest(int repeats, const Work& work) {
  double best = 1e300;
  for (int i = 0; i < repeats; ++i) {
    const double start = cpuSeconds();
    work();
    best = std::min(best, cpuSeconds() - start);
  }
  return best;
}

}  // namespace

int main() {
  for (const int stages : {16, 64}) {
    const Plan plan = planOf("64x8:A100-80-SXM,64x8:Ascend-910B2", "gpt3-175b", stages, 1000);
    const AnalyticProfile profile(plan.model, plan.training);
    const CostModel model(plan.cluster, plan.model, plan.training, profile);
    const Seconds bound = problemLowerBound(model);
    const double seconds = lowest(5, [&] { (void)evaluate(model, plan, bound, false); });
    fmt::print("evaluate, 1024 devices, 96 layers, {} pipelines of {} stages, 1000 micro-batches each: {:.1f} ms\n",
               plan.pipelines.size(), stages, 1e3 * seconds);
  }
  const Plan plan = planOf("1x8:A100-80-SXM,1x8:V100-32-SXM2", "gpt3-1.3b", 8, 16);
  const AnalyticProfile profile(plan.model, plan.training);
  const CostModel model(plan.cluster, plan.model, plan.training, profile);
  constexpr int kPlans = 2000;
  const double all = lowest(5, [&] {
    for (int i = 0; i < kPlans; ++i) (void)iterationTime(model, plan.pipelines);
  });
  const double whole = lowest(5, [&] {
    for (int i = 0; i < kPlans; ++i) (void)evaluate(model, plan, {}, false);
  });
  fmt::print("plans of 16 devices a second and core: {:.0f} (iteration time as searches ask it), {:.0f} (whole evaluations)\n",
             kPlans / all, kPlans / whole);
  return 0;
}
