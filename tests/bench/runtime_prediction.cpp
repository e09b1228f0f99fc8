// SPDX-License-Identifier: GPL-3.0-or-later
// Profiles this processor, predicts plans on throttled CPU devices from the profile, runs them with real workers and compares:
// bench_runtime_prediction [steps] [runs] [-v]. Then the same plans on virtual devices, which sleep what is predicted. -v: also where the time of each
// stage went, predicted and measured. The speeds of all devices together stay below one core. An iteration is the median over the steps of a run, of the
// slowest rank. Each run has a profile of its own, taken just before it: this machine's speed drifts by a tenth in a minute where others share it. The
// median of the runs' errors counts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string_view>

#include "core/cost/evaluate.h"
#include "core/plan/block_map.h"
#include "core/profile/table_profile.h"
#include "tests/runtime/worker_run.h"
#include "tests/support/plans.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace evenkeel;

constexpr std::int64_t kSequence = 128;
constexpr double kProfiledSpeed = 0.15;  // the cases have 0.1 to 0.2

Model model() {
  Model model = *modelFromArgument("tiny-gpt");
  model.layers = 4;
  model.hidden = 256;
  model.heads = model.kvHeads = 4;
  model.headDim = 64;
  model.ffn = 1024;
  model.context = kSequence;
  return model;
}

struct Case {
  const char* name;
  Plan plan;
};

std::vector<Case> cases() {
  const auto planFor = [](const char* cluster, const std::vector<PipelineText>& pipelines) {
    Plan plan = planOf(*parseClusterShorthand(cluster), model(), pipelines);
    plan.training.sequenceLength = kSequence;
    plan.training.zeroStage = 0;
    return plan;
  };
  std::vector<Case> all;
  all.push_back({"one device", planFor("1x1:cpu@0.2", {{8, 2, {"cpu-0/0"}, {0, 10}}})});
  all.push_back({"two unlike stages", planFor("1x1:cpu@0.2,1x1:cpu@0.1", {{8, 2, {"cpu-0/0", "cpu-1/0"}, {0, 7, 10}}})});
  all.push_back({"two stages, even cut", planFor("1x2:cpu@0.15", {{8, 2, {"cpu-0/0", "cpu-0/1"}, {0, 5, 10}}})});
  all.push_back({"a pipeline and a device", planFor("1x2:cpu@0.15,1x1:cpu@0.2", {{8, 2, {"cpu-0/0", "cpu-0/1"}, {0, 5, 10}}, {6, 2, {"cpu-1/0"}, {0, 10}}})});
  all.push_back({"with recomputation", planFor("1x2:cpu@0.15", {{8, 2, {"cpu-0/0", "cpu-0/1"}, {0, 5, 10}}})});
  all.back().plan.pipelines[0].stages[0].recompute = {{{1, 5}, {Op::Norm1, Op::Qkv, Op::Score, Op::Softmax, Op::Context, Op::Norm2, Op::Fc1, Op::Activation}}};
  return all;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? std::nan("") : values[values.size() / 2];
}

/// What `evenkeel-worker --profile` says of this processor.
Result<ProfileTable> profileHere() {
  const Plan plan = cases().front().plan;
  const Json request = {{"model", toJson(plan.model)}, {"training", toJson(plan.training)}, {"samples", {1, 2}}, {"device_type", "cpu"}, {"seconds_per_point", 0.5}, {"speed", kProfiledSpeed}};
  const TemporaryDirectory folder(TemporaryDirectory::Name::Plain);
  const std::string file = folder.file("request.json", request.dump()), out = (folder.path() / "profile.json").string();
  if (std::system(fmt::format("{}/evenkeel-worker --profile < {} > {}", EVENKEEL_BIN_DIR, file, out).c_str()) != 0) return failed("evenkeel-worker --profile", "failed");
  return loadProfile(out);
}

/// What the ranks of a run spent, medians in ms.
struct Spent {
  double iteration = 0, compute = 0, peer = 0, bubble = 0, sync = 0, optimizer = 0;
};

Spent spentBy(const RankOutcome& rank) {
  const auto field = [&](const char* name) {
    auto times = rank.ofSteps(name);
    if (times.size() > 2) times.erase(times.begin());
    return median(times);
  };
  return {field("iteration_ms"), field("compute_ms"), field("p2p_ms"), field("bubble_ms"), field("sync_ms"), field("optimizer_ms")};
}

/// By rank.
std::vector<Spent> measured(const Plan& plan, std::int64_t steps, bool rehearse) {
  WorkerRun run({.plan = plan, .steps = steps, .peerSeconds = 120, .learningRate = 1e-3, .rehearse = rehearse});
  std::map<int, WorkerRun::Environment> ownKernels;
  for (std::size_t rank = 0; rank < plan.usedDevices().size(); ++rank) ownKernels[static_cast<int>(rank)] = {{"OPENBLAS_CORETYPE", ""}};
  run.start(ownKernels);
  std::vector<Spent> spent;
  for (const RankOutcome& rank : run.finish(std::chrono::seconds(600))) {
    if (rank.exitStatus != 0) fmt::print("{}\n", rank.log);
    spent.push_back(spentBy(rank));
  }
  return spent;
}

double slowestOf(const std::vector<Spent>& ranks) {
  double slowest = 0;
  for (const Spent& rank : ranks) slowest = std::max(slowest, rank.iteration);
  return slowest;
}

void printSplit(const Evaluation& evaluation, const std::vector<Spent>& ranks, const char* what) {
  const PlanPrediction& predicted = *evaluation.plan.predicted;
  const auto places = rankPlaces(evaluation.plan);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const StageActivity& activity = evaluation.activity[places[r].pipeline][places[r].stage];
    const Spent& spent = ranks[r];
    fmt::print("    rank {} {}: compute {:.1f} of {:.1f} ({:+.1f} %), waiting {:.1f} of {:.1f}, sync {:.1f} of {:.1f}, optimizer {:.1f} of {:.1f}\n", r, what, spent.compute,
               milliseconds(activity.busy), 100 * (milliseconds(activity.busy) / spent.compute - 1), spent.peer + spent.bubble, milliseconds(predicted.pipeline - activity.busy),
               spent.sync, milliseconds(predicted.sync), spent.optimizer, milliseconds(predicted.optimizer));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const bool isVerbose = argc > 1 && std::string_view(argv[argc - 1]) == "-v";
  const int count = isVerbose ? argc - 1 : argc;
  const std::int64_t steps = count > 1 ? std::stoll(argv[1]) : 5;
  const int runs = count > 2 ? std::stoi(argv[2]) : 3;
  std::vector<double> errors, rehearsedErrors;
  for (const Case& one : cases()) {
    std::vector<double> caseErrors, caseRehearsed;
    for (int i = 0; i < runs; ++i) {
      const auto table = profileHere();
      if (!table) {
        fmt::print(stderr, "{}\n", table.error().text());
        return 1;
      }
      const Evaluation evaluation = evaluate(one.plan, TableProfile(*table, one.plan.model, one.plan.training, "measured"));
      const double predicted = milliseconds(evaluation.plan.predicted->iteration);
      const auto trained = measured(one.plan, steps, false), rehearsed = measured(evaluation.plan, steps, true);
      caseErrors.push_back(predicted / slowestOf(trained) - 1);
      caseRehearsed.push_back(predicted / slowestOf(rehearsed) - 1);
      fmt::print("  run {}: predicted {:8.1f} ms; trained {:8.1f} ms ({:+.1f} %), rehearsed {:8.1f} ms ({:+.2f} %)\n", i, predicted, slowestOf(trained), 100 * caseErrors.back(),
                 slowestOf(rehearsed), 100 * caseRehearsed.back());
      if (!isVerbose) continue;
      printSplit(evaluation, trained, "trained");
      printSplit(evaluation, rehearsed, "rehearsed");
    }
    errors.push_back(median(caseErrors));
    rehearsedErrors.push_back(median(caseRehearsed));
    fmt::print("{:<24} trained {:+.1f} %, rehearsed {:+.2f} % (medians of {})\n", one.name, 100 * errors.back(), 100 * rehearsedErrors.back(), runs);
  }
  const auto worst = [](const std::vector<double>& all) { return 100 * std::abs(*std::ranges::max_element(all, {}, [](double e) { return std::abs(e); })); };
  fmt::print("worst: trained {:.1f} %, rehearsed {:.2f} %\n", worst(errors), worst(rehearsedErrors));
  return 0;
}
