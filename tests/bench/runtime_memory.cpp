// SPDX-License-Identifier: GPL-3.0-or-later
// Prints the peak memory that workers measure beside the predicted one, over random plans on CPU devices: bench_runtime_memory
// [plans] [first seed] [-v]. Compared are what tensors hold (the prediction without what the framework holds) and the whole
// resident size; each as predicted / measured: never below 1 and at most 1.1 is what is asked for. The worst rank of every stage
// counts.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "core/cost/memory.h"
#include "core/plan/block_map.h"
#include "core/profile/analytic_profile.h"
#include "tests/runtime/random_plans.h"
#include "tests/runtime/worker_run.h"

namespace {

using namespace evenkeel;

constexpr std::int64_t kBatch = 11, kSequence = 256;

/// Large enough for activations to count beside the parameters.
Model grown(std::uint64_t seed) {
  Model model = randomModel(seed);
  model.layers = 4;
  model.hidden = 384;
  model.headDim = 32;
  model.ffn = 1536;
  model.vocab = 1500;
  model.context = kSequence;
  return model;
}

struct Ratios {
  std::vector<double> tensors, whole;
};

void print(const char* what, std::vector<double> ratios) {
  std::ranges::sort(ratios);
  if (ratios.empty()) return;
  const auto below = std::ranges::count_if(ratios, [](double r) { return r < 1; }),
             above = std::ranges::count_if(ratios, [](double r) { return r > 1.1; });
  fmt::print("{:<8} {} stages: least {:.3f}, median {:.3f}, most {:.3f}; {} below 1, {} above 1.1\n", what, ratios.size(),
             ratios.front(), ratios[ratios.size() / 2], ratios.back(), below, above);
}

bool measure(std::uint64_t seed, bool isVerbose, Ratios& ratios) {
  Plan plan = randomPlan(seed, grown(seed), kBatch);
  plan.training.sequenceLength = kSequence;
  const AnalyticProfile profile(plan.model, plan.training);
  const CostModel model(plan.cluster, plan.model, plan.training, profile);
  const MemoryByReplica predicted = memoryOf(model, plan.pipelines);
  WorkerRun run({.plan = plan, .steps = 2, .peerSeconds = 120});
  const auto places = rankPlaces(plan);
  std::map<int, WorkerRun::Environment> ownKernels;
  for (std::size_t rank = 0; rank < places.size(); ++rank) ownKernels[static_cast<int>(rank)] = {{"OPENBLAS_CORETYPE", ""}};
  run.start(ownKernels);
  const auto outcomes = run.finish(std::chrono::seconds(300));
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    const Json* const last = outcomes[rank].last("step");
    if (outcomes[rank].exitStatus != 0 || last == nullptr) {
      fmt::print("seed {}: rank {}: {}\n", seed, rank, outcomes[rank].log);
      return false;
    }
    const RankPlace& place = places[rank];
    const Stage& stage = plan.pipelines[place.pipeline].stages[place.stage];
    const MemoryUse& use = predicted[place.pipeline][place.stage][static_cast<std::size_t>(place.replica)];
    const auto tensors = last->at("tensor_bytes").get<double>(), whole = last->at("peak_bytes").get<double>();
    const auto own = static_cast<double>((use.total() - use.reserved).value);
    ratios.tensors.push_back(own / tensors);
    ratios.whole.push_back(static_cast<double>(use.total().value) / whole);
    if (!isVerbose) continue;
    const auto mb = [](Bytes bytes) { return static_cast<double>(bytes.value) * 1e-6; };
    const Json& state = last->at("state_bytes");
    const double held = (state.at("weights").get<double>() + state.at("gradients").get<double>() +
                         state.at("optimizer").get<double>() + state.at("sync").get<double>()) *
                        1e-6;
    fmt::print(
        "  seed {} rank {}: pipeline {} of {}, stage {} of {}, units {}-{}, tp {} dp {}, {} x{}, {} ops recomputed, zero {}, "
        "{}{}: tensors {:.2f} ({:.1f} / {:.1f} MB; state {:.1f}, measured "
        "{:.1f}; activations {:.1f} transient {:.1f}), whole {:.2f} ({:.0f} / {:.0f} MB)\n",
        seed, rank, place.pipeline, plan.pipelines.size(), place.stage, plan.pipelines[place.pipeline].stages.size(),
        stage.units.first, stage.units.last, stage.tp, stage.dp, plan.pipelines[place.pipeline].microBatch,
        plan.pipelines[place.pipeline].microBatchCount(), stage.recompute.size(), plan.training.zeroStage,
        name(plan.training.gradientSync), plan.model.family() == Family::Llama ? " llama" : "", own / tensors, own * 1e-6,
        tensors * 1e-6, mb(use.weights + use.gradients + use.optimizer), held, mb(use.activations), mb(use.transient),
        static_cast<double>(use.total().value) / whole, mb(use.total()), whole * 1e-6);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const bool isVerbose = argc > 1 && std::string_view(argv[argc - 1]) == "-v";
  const int count = isVerbose ? argc - 1 : argc;
  const std::uint64_t plans = count > 1 ? std::stoull(argv[1]) : 20, first = count > 2 ? std::stoull(argv[2]) : 0;
  Ratios ratios;
  for (std::uint64_t seed = first; seed < first + plans; ++seed) {
    if (!measure(seed, isVerbose, ratios)) return 1;
  }
  print("tensors", ratios.tensors);
  print("whole", ratios.whole);
  return 0;
}
