// SPDX-License-Identifier: GPL-3.0-or-later
// Prints what one forward and one backward of each kind of unit cost on this core, in CPU time (so that other processes do not
// disturb it): bench_unit_times [model] [sequence]. What core/cost predicts for device type cpu is compared with this.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/device/compute_clock.h"
#include "runtime/device/torch_setup.h"
#include "runtime/job/process.h"
#include "runtime/nn/stage_model.h"

namespace {

using namespace evenkeel;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void measure(const Plan& plan, const Parameters& parameters, int unit, std::int64_t batch) {
  const Model& model = plan.model;
  const std::int64_t sequence = plan.training.sequenceLength;
  const TensorParallel oneShard;
  const StageModel stage(model, Stage{.units = {unit, unit + 1}}, parameters, oneShard);
  const at::Tensor tokens_BS = at::randint(std::min<std::int64_t>(model.vocab, 256), {batch, sequence}, at::kLong);
  std::vector<double> forward, backward;
  for (int repeat = 0; repeat < 25; ++repeat) {
    const bool isFirst = unit == 0;
    const at::Tensor input = isFirst ? tokens_BS : at::randn({batch, sequence, model.hidden}).requires_grad_();
    const Seconds start = threadCpuTime();
    const at::Tensor output = stage.forward(input, {.targets_BS = tokens_BS});
    const Seconds middle = threadCpuTime();
    const at::Tensor gradient = output.dim() == 0 ? at::ones({}, at::kDouble) : at::randn(output.sizes());
    const Seconds before = threadCpuTime();
    output.backward(gradient);
    forward.push_back(milliseconds(middle - start));
    backward.push_back(milliseconds(threadCpuTime() - before));
  }
  static constexpr const char* kNames[] = {"embedding", "attention", "mlp", "head"};
  fmt::print("{:<10} micro-batch {}: forward {:8.3f} ms, backward {:8.3f} ms\n", kNames[static_cast<int>(model.unitKind(unit))],
             batch, median(forward), median(backward));
}

}  // namespace

int main(int argc, char** argv) {
  prepareLibraries(argv);
  useOneThread();
  keepFreedMemory();
  Plan plan;
  const auto model = modelFromArgument(argc > 1 ? argv[1] : "tiny-gpt");
  if (!model) {
    fmt::print(stderr, "{}\n", model.error().text());
    return 2;
  }
  plan.model = *model;
  plan.cluster = *parseClusterShorthand("1x1:cpu");
  plan.training.sequenceLength = argc > 2 ? std::stoll(argv[2]) : plan.model.context;
  plan.training.globalBatch = 1;
  plan.pipelines = {{.localBatch = 1, .stages = {Stage{.devices = {{0, 0}}, .units = {0, plan.model.unitCount()}}}}};
  const Parameters parameters(blockMap(plan), 0, 0, 1);
  fmt::print("{}, sequence {}, sgemm {:.0f} GFLOP/s\n", plan.model.name, plan.training.sequenceLength, measureGemmGflops());
  for (const int unit : {0, 1, 2, plan.model.unitCount() - 1}) {
    for (const std::int64_t batch : {1, 2, 4, 8}) measure(plan, parameters, unit, batch);
  }
  return 0;
}
