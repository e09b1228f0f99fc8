// SPDX-License-Identifier: GPL-3.0-or-later
// Prints how fast one device trains a GPT of 30 million parameters, beside the same model in eager PyTorch of Debian's python3-torch on
// one thread (eager/train_gpt.py): bench_runtime_speed [steps] [rounds]. The two take turns; what is compared is the median CPU time of
// a step, which other processes disturb least.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "tests/runtime/worker_run.h"
#include "tests/support/plans.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace evenkeel;

constexpr const char* kPython = "/usr/bin/python3";  // Debian's, whatever else is in PATH
constexpr std::int64_t kSequence = 128;
constexpr int kBatch = 8;
constexpr std::size_t kWarmUp = 2;  // steps

/// Tiny-gpt grown to 29.8 million parameters.
Model grown() {
  Model model = *modelFromArgument("tiny-gpt");
  model.layers = 6;
  model.hidden = 640;
  model.heads = model.kvHeads = 10;
  model.headDim = 64;
  model.ffn = 4 * model.hidden;
  model.context = kSequence;
  return model;
}

struct Times {
  std::vector<double> wall, cpu;  // ms a step
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

void take(Times& times, const std::vector<double>& wall, const std::vector<double>& cpu) {
  for (std::size_t i = kWarmUp; i < wall.size(); ++i) {
    times.wall.push_back(wall[i]);
    times.cpu.push_back(cpu[i]);
  }
}

bool runOurs(std::int64_t steps, Times& times) {
  Plan plan = planOf(*parseClusterShorthand("1x1:cpu"), grown(), {{kBatch, kBatch, {"cpu-0/0"}, {0, grown().unitCount()}}});
  plan.training.sequenceLength = kSequence;
  WorkerRun run({.plan = plan, .steps = steps, .learningRate = 1e-3});
  run.start({{0, {{"OPENBLAS_CORETYPE", ""}}}});  // its own kernels, as on a node
  const auto outcomes = run.finish(std::chrono::seconds(600));
  if (outcomes[0].exitStatus != 0) fmt::print(stderr, "{}\n", outcomes[0].log);
  take(times, outcomes[0].ofSteps("iteration_ms"), outcomes[0].ofSteps("cpu_ms"));
  return outcomes[0].exitStatus == 0;
}

bool runEager(std::int64_t steps, const std::filesystem::path& text, Times& times) {
  const Model model = grown();
  const std::string command = fmt::format("OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 {} {}/tests/bench/eager/train_gpt.py {} {} {} {} {} {} {}", kPython, EVENKEEL_SOURCE_DIR,
                                          model.layers, model.hidden, model.heads, kSequence, kBatch, steps, text.string());
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::vector<double> wall, cpu;
  char line[512];
  while (pipe && std::fgets(line, sizeof line, pipe.get()) != nullptr) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    wall.push_back(json.at("wall_ms").get<double>());
    cpu.push_back(json.at("cpu_ms").get<double>());
  }
  take(times, wall, cpu);
  return wall.size() == static_cast<std::size_t>(steps);
}

void print(const char* who, const Times& times) {
  const double cpu = median(times.cpu), tokens = static_cast<double>(kBatch * kSequence);
  fmt::print("{:<13} {:8.1f} ms CPU, {:8.1f} ms wall a step; {:7.0f} tokens a CPU second\n", who, cpu, median(times.wall), tokens / cpu * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t steps = argc > 1 ? std::stoll(argv[1]) : 12;
  const int rounds = argc > 2 ? std::stoi(argv[2]) : 3;
  const TemporaryDirectory folder(TemporaryDirectory::Name::Plain);
  const auto text = folder.path() / "text";
  if (!writeFileAtomically(text, trainingText())) return 1;
  fmt::print("GPT of {:.1f} million parameters, {} sequences of {} tokens a step, {} rounds of {} steps\n", static_cast<double>(parameterCount(grown())) * 1e-6,
             kBatch, kSequence, rounds, steps);
  const bool hasTorch = std::system((std::string(kPython) + " -c 'import torch' 2>/dev/null").c_str()) == 0;
  if (!hasTorch) fmt::print("SKIPPED: eager PyTorch; {} has no torch (apt install python3-torch)\n", kPython);
  Times ours, eager;
  for (int round = 0; round < rounds; ++round) {
    if (!runOurs(steps, ours)) return 1;
    if (hasTorch && !runEager(steps, text, eager)) return 1;
  }
  print("evenkeel", ours);
  if (hasTorch) {
    print("eager PyTorch", eager);
    fmt::print("evenkeel trains {:.3f} times as many tokens a CPU second\n", median(eager.cpu) / median(ours.cpu));
  }
  return 0;
}
