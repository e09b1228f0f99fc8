// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/profile/op_times.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <numeric>
#include <thread>

#include "runtime/device/compute_clock.h"
#include "runtime/job/process.h"
#include "runtime/nn/stage_model.h"

namespace evenkeel {
namespace {

constexpr std::int64_t kMostSamples = 1 << 16;
constexpr int kWarmUpRuns = 2, kMostRuns = 101;
constexpr int kUnitKinds = 4;   // embedding, attention, MLP, head
constexpr int kMostLayers = 4;  // more of the same tell nothing new
constexpr double kLongestRest = 0.2;  // seconds: nothing becomes colder after that

struct Times {
  std::vector<double> forward, backward;  // seconds
};

/// The ops of one unit, run one by one: each with a graph of its own, so that its backward can be timed alone.
class UnitRun {
 public:
  UnitRun(std::vector<OpStep> steps, Batch batch) : steps_(std::move(steps)), batch_(std::move(batch)), recorded_(steps_.size()) {}

  /// The residual stream behind the unit; behind the head the loss.
  at::Tensor forward(const at::Tensor& input, std::map<Op, Times>& times) {
    slots_ = {};
    slots_[Slot::Residual] = input;
    for (std::size_t i = 0; i < steps_.size(); ++i) times[steps_[i].op].forward.push_back(forwardOf(steps_[i], recorded_[i]).value);
    return slots_[Slot::Residual];
  }

  /// The gradient of the residual stream before the unit, from that behind it.
  at::Tensor backward(at::Tensor gradient, std::map<Op, Times>& times) {
    Slots gradients;
    gradients[Slot::Residual] = std::move(gradient);
    for (std::size_t i = steps_.size(); i-- > 0;) times[steps_[i].op].backward.push_back(backwardOf(recorded_[i], gradients).value);
    return gradients[Slot::Residual];
  }

 private:
  struct Recorded {
    Slots inputs, outputs;  // leaves that were read; what was written
    SlotSet reads, writes;
  };

  Seconds forwardOf(const OpStep& step, Recorded& recorded) {
    recorded = {.inputs = {}, .outputs = {}, .reads = step.reads, .writes = step.writes};
    Slots own;
    for (std::size_t s = 0; s < kSlotCount; ++s) {
      if (!step.reads[s] || !slots_.tensors[s].defined()) continue;
      at::Tensor leaf = slots_.tensors[s].detach();
      if (leaf.is_floating_point()) leaf.requires_grad_();
      recorded.inputs.tensors[s] = own.tensors[s] = leaf;
    }
    const Seconds start = threadCpuTime();
    step.run(own, batch_);
    const Seconds time = threadCpuTime() - start;
    for (std::size_t s = 0; s < kSlotCount; ++s) {
      if (!step.writes[s]) continue;
      recorded.outputs.tensors[s] = own.tensors[s];
      slots_.tensors[s] = own.tensors[s].defined() ? own.tensors[s].detach() : at::Tensor();
    }
    return time;
  }

  static Seconds backwardOf(Recorded& recorded, Slots& gradients) {
    torch::autograd::variable_list outputs, outputGradients;
    for (std::size_t s = 0; s < kSlotCount; ++s) {
      if (!recorded.writes[s]) continue;
      at::Tensor gradient = std::exchange(gradients.tensors[s], at::Tensor());
      const at::Tensor& output = recorded.outputs.tensors[s];
      if (!gradient.defined() || !output.defined() || !output.requires_grad()) continue;
      outputs.push_back(output);
      outputGradients.push_back(std::move(gradient));
    }
    const Seconds start = threadCpuTime();
    if (!outputs.empty()) torch::autograd::backward(outputs, outputGradients);
    for (std::size_t s = 0; s < kSlotCount; ++s) {
      if (!recorded.reads[s] || !recorded.inputs.tensors[s].defined()) continue;
      const at::Tensor own = recorded.inputs.tensors[s].grad();
      at::Tensor& sum = gradients.tensors[s];
      if (own.defined()) sum = sum.defined() ? sum + own : own;  // the residual stream
    }
    outputs.clear();
    recorded = {};
    return threadCpuTime() - start;
  }

  std::vector<OpStep> steps_;
  Batch batch_;
  Slots slots_;
  std::vector<Recorded> recorded_;
};

/// The mean of all but the slowest twentieth. A step is a sum of many runs, and their times lean to the slow side: medians would add
/// up to too little.
double usual(std::vector<double> values) {
  std::ranges::sort(values);
  values.resize(values.size() - values.size() / 20);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// `warm`: of the first of them, which are left out.
ProfilePoint pointOf(const Times& times, std::size_t warm) {
  std::vector<double> sums;
  for (std::size_t i = warm; i < times.forward.size(); ++i) sums.push_back(times.forward[i] + times.backward[i]);
  const double mean = std::accumulate(sums.begin(), sums.end(), 0.0) / static_cast<double>(sums.size());
  double squares = 0;
  for (const double sum : sums) squares += (sum - mean) * (sum - mean);
  const auto kept = [&](const std::vector<double>& values) {
    return std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(warm), values.end());
  };
  return {.forward = {usual(kept(times.forward))},
          .backward = {usual(kept(times.backward))},
          .saved = std::nullopt,
          .source = ValueSource::Measured,
          .runs = static_cast<int>(sums.size()),
          .spread = mean > 0 ? std::sqrt(squares / static_cast<double>(sums.size())) / mean : 0};
}

/// Runs a pass, and rests after it as ComputeClock lets a slow device rest.
template <class Pass>
void runAtSpeed(double speed, const Pass& pass) {
  const Seconds start = threadCpuTime();
  pass();
  if (speed >= 1) return;
  const double due = (threadCpuTime() - start).value * (1 / speed - 1);
  std::this_thread::sleep_for(std::chrono::duration<double>(std::min(due, kLongestRest)));
}

/// Steps of a model of few layers, whole ones: an op that is run again and again by itself finds its weights and inputs in the cache,
/// which it does not in training.
void measureSteps(const ProfileRequest& request, const Model& model, const Parameters& parameters, std::int64_t samples,
                  DeviceProfile& profile) {
  const TensorParallel oneShard;
  const at::Tensor tokens_BS = at::randint(model.vocab, {samples, request.training.sequenceLength}, at::kLong);
  std::vector<UnitRun> units;
  for (int unit = 0; unit < model.unitCount(); ++unit)
    units.emplace_back(stepsOfUnit(model, unit, parameters, oneShard, {}, request.training.precision), Batch{.targets_BS = tokens_BS});
  std::map<Op, Times> times;
  std::map<Op, std::size_t> warm;
  const Seconds budget{request.perPoint.value * kUnitKinds};
  const Seconds start = threadCpuTime();
  for (int repeat = 0; repeat < kMostRuns; ++repeat) {
    if (repeat >= kWarmUpRuns + kLeastRuns && threadCpuTime() - start > budget) break;
    at::Tensor stream = tokens_BS;
    runAtSpeed(request.speed, [&] {
      for (UnitRun& unit : units) stream = unit.forward(stream, times);
    });
    at::Tensor gradient = at::full({}, 1e-3, stream.options());
    runAtSpeed(request.speed, [&] {
      for (auto unit = units.rbegin(); unit != units.rend(); ++unit) gradient = unit->backward(std::move(gradient), times);
    });
    if (repeat + 1 == kWarmUpRuns) {
      for (const auto& [op, all] : times) warm[op] = all.forward.size();
    }
  }
  for (const auto& [op, all] : times) profile.points[{op, 1}][samples] = pointOf(all, warm[op]);
}

}  // namespace

Result<ProfileRequest> parseProfileRequest(const Json& json, const std::string& source) {
  JsonContext context{source, {}};
  JsonReader reader(json, context);
  ProfileRequest request;
  JsonReader model = reader.object("model");
  request.model = readModel(model);
  JsonReader training = reader.object("training");
  request.training = readTraining(training);
  request.samples = reader.integers("samples", {1, kMostSamples});
  request.deviceType = reader.text("device_type");
  request.perPoint.value = reader.number("seconds_per_point", {0, 3600}, request.perPoint.value);
  request.speed = reader.number("speed", {1e-3, 1e3}, request.speed);
  if (context.error) return *std::move(context.error);
  if (request.samples.empty()) return invalidInput(source, "asks for no number of samples");
  return request;
}

Json toJson(const ProfileRequest& request) {
  return {{"model", toJson(request.model)},
          {"training", toJson(request.training)},
          {"samples", request.samples},
          {"device_type", request.deviceType},
          {"seconds_per_point", request.perPoint.value},
          {"speed", request.speed}};
}

ProfileTable measureOps(const ProfileRequest& request) {
  ProfileTable table;
  DeviceProfile& profile = table.devices[request.deviceType];
  profile.reserved = peakResident();
  Plan plan;
  plan.model = request.model;
  plan.model.layers = std::min(plan.model.layers, kMostLayers);
  plan.training = request.training;
  plan.training.globalBatch = 1;
  plan.cluster = *parseClusterShorthand("1x1:cpu");
  plan.pipelines = {{.localBatch = 1, .stages = {Stage{.devices = {{0, 0}}, .units = {0, plan.model.unitCount()}}}}};
  const Parameters parameters(blockMap(plan), 0, 0, 1, request.training.precision);
  for (const std::int64_t samples : request.samples) measureSteps(request, plan.model, parameters, samples, profile);
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%d", &parts);
  table.conditions = {.precision = request.training.precision,
                      .sequenceLength = request.training.sequenceLength,
                      .model = request.model.name,
                      .framework = std::string("LibTorch ") + TORCH_VERSION,
                      .driver = {},
                      .date = date};
  return table;
}

}  // namespace evenkeel
