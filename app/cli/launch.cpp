// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "app/cli/command.h"
#include "app/cli/describe.h"
#include "app/cli/follow.h"
#include "app/cli/inputs.h"
#include "core/base/words.h"
#include "core/cost/evaluate.h"
#include "core/plan/features.h"
#include "core/profile/analytic_profile.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  std::string plan, runFile, resume, onFailure = "stop";
  std::vector<std::string> data;
  std::optional<std::int64_t> steps, seed, warmupSteps;
  std::optional<double> learningRate, weightDecay, beta1, beta2, gradientClip, dropout;
  std::optional<std::string> schedule;
  bool local = false, rehearse = false, detach = false, dryRun = false, asJson = false;
};

/// The folder of this program; agent and worker lie beside it.
std::filesystem::path programFolder() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).parent_path();
}

/// The run's settings: the run file if there is one, changed by the options. Checked by writing and reading them once.
Result<Run> runFrom(const Arguments& arguments) {
  Json json;
  std::string source = "the options of launch";
  if (!arguments.runFile.empty()) {
    auto read = readJsonFile(arguments.runFile);
    if (!read) return std::move(read).error();
    json = *std::move(read);
    source = arguments.runFile;
    if (!json.is_object()) return invalidInput(source, "is no object", "expected a run file (evenkeel.run/1)");
  } else {
    if (!arguments.steps) return invalidInput("launch", "says neither --steps nor --run", "add --steps N");
    json = {{"format", kRunFormat}};
  }
  if (arguments.steps) json["steps"] = *arguments.steps;
  if (arguments.seed) json["seed"] = *arguments.seed;
  if (arguments.warmupSteps) json["learning_rate"]["warmup_steps"] = *arguments.warmupSteps;
  if (arguments.learningRate) json["learning_rate"]["peak"] = *arguments.learningRate;
  if (arguments.schedule) json["learning_rate"]["schedule"] = *arguments.schedule;
  if (arguments.gradientClip) json["gradient_clip"] = *arguments.gradientClip;
  if (arguments.dropout) json["dropout"] = *arguments.dropout;
  if (arguments.weightDecay) json["weight_decay"] = *arguments.weightDecay;
  if (arguments.beta1 || arguments.beta2) json["betas"] = {arguments.beta1.value_or(Run{}.beta1), arguments.beta2.value_or(Run{}.beta2)};
  if (!arguments.data.empty()) json["data"]["train"] = arguments.data;

  JsonContext context{source, {}};
  JsonReader reader(json, context);
  Run run = readRun(reader);
  if (context.error) return *std::move(context.error);
  if (run.train.empty()) return invalidInput(source, "names no training data", "add --data FILE or --data FOLDER");
  return run;
}

/// A plan that is valid and that the runtime can execute, or every reason why not.
Result<Plan> launchablePlan(const std::string& file) {
  auto plan = loadPlan(file);
  if (!plan) return plan;
  const AnalyticProfile profile(plan->model, plan->training);
  auto violations = evaluate(*plan, profile).violations;
  if (violations.empty()) violations = notLaunchable(*plan, ownRuntime());
  if (!violations.empty()) {
    return invalidInput(file, "cannot be launched", fmt::format("{}:\n{}", counted(violations.size(), "reason"), describe(violations)));
  }
  if (!plan->inputsSha256.empty() && plan->inputsSha256 != inputsHash(plan->cluster, plan->model, plan->training)) {
    note("warning: {} is stale: its cluster, model or training was changed after it was planned\n", file);
  }
  return plan;
}

Result<LaunchRequest> requestFrom(const Arguments& arguments) {
  if (arguments.rehearse) return notYet("--rehearse");
  if (!arguments.resume.empty()) return notYet("--resume");
  if (arguments.onFailure == "resume" || arguments.onFailure == "replan") return notYet("--on-failure " + arguments.onFailure);
  if (arguments.onFailure != "stop") return invalidInput("--on-failure", fmt::format("\"{}\" is unknown", arguments.onFailure), "expected stop, resume or replan");
  auto run = runFrom(arguments);
  if (!run) return std::move(run).error();
  auto plan = launchablePlan(arguments.plan);
  if (!plan) return std::move(plan).error();
  LaunchRequest request;
  request.plan = *std::move(plan);
  request.run = *std::move(run);
  request.local = arguments.local;
  request.programs = programFolder();
  return request;
}

int dryRun(Launcher& launcher, const LaunchRequest& request, bool asJson) {
  const auto commands = launcher.dryRun(request);
  if (!commands) return report(commands.error());
  if (asJson) printJson({{"commands", *commands}});
  else for (const std::string& command : *commands) fmt::print("{}\n", command);
  return kOk;
}

int run(const Arguments& arguments) {
  const auto request = requestFrom(arguments);
  if (!request) return report(request.error());
  auto launcher = Launcher::open();
  if (!launcher) return report(launcher.error());
  if (arguments.dryRun) return dryRun(*launcher, *request, arguments.asJson);

  FollowInterrupt interrupt;
  JobProgress progress(request->run.steps);
  const auto started = launcher->startJob(*request, progress, interrupt.token());
  progress.endLine();
  if (!started) return report(started.error());
  note("run {}\n", *started);
  if (!arguments.detach) return followToEnd(*launcher, *started, progress, interrupt, arguments.asJson);

  // Detached means: step 1 is done, so that what cannot start is still seen here.
  struct FirstStep final : JobObserver {
    std::stop_source stop;
    void onStep(const StepRecord&) override { stop.request_stop(); }
  } first;
  const std::stop_callback onInterrupt(interrupt.token(), [&] { first.stop.request_stop(); });
  const auto status = launcher->followJob(*started, first, first.stop.get_token());
  if (!status) return report(status.error());
  if (arguments.asJson) printJson(toJson(*status));
  else fmt::print("{}\nfollow it: evenkeel-cli attach {}\n", describe(*status), *started);
  return exitCodeOf(status->state);
}

}  // namespace

void addLaunch(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("launch", "Start the training that a plan describes, and follow it");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("plan", arguments->plan, "Plan file")->required();
  command->add_option("--data", arguments->data, "Text file or folder to train on; may be given several times");
  command->add_option("--steps", arguments->steps, "Steps (iterations) to train");
  command->add_option("--run", arguments->runFile, "Run file (evenkeel.run/1); options win over it");
  command->add_option("--learning-rate", arguments->learningRate, "Peak learning rate (default 1e-3)");
  command->add_option("--warmup-steps", arguments->warmupSteps, "Steps until the peak (default 10)");
  command->add_option("--schedule", arguments->schedule, "cosine (default), linear or constant, after the peak");
  command->add_option("--gradient-clip", arguments->gradientClip, "Longest gradient of the whole model (default: as long as it is)");
  command->add_option("--dropout", arguments->dropout, "Probability, after softmax and before each residual addition (default 0)");
  command->add_option("--weight-decay", arguments->weightDecay, "Of tensors with two dimensions (default 0.1)");
  command->add_option("--beta1", arguments->beta1, "AdamW (default 0.9)");
  command->add_option("--beta2", arguments->beta2, "AdamW (default 0.95)");
  command->add_option("--seed", arguments->seed, "Of weights and sample order (default 1)");
  command->add_flag("--local", arguments->local, "Every node is this machine");
  command->add_flag("--detach", arguments->detach, "Return once step 1 is done");
  command->add_flag("--dry-run", arguments->dryRun, "Only print the commands");
  command->add_option("--on-failure", arguments->onFailure, "stop (resume and replan are not there yet)");
  command->add_flag("--rehearse", arguments->rehearse, "Virtual devices (not there yet)");
  command->add_option("--resume", arguments->resume, "Checkpoint (not there yet)");
  command->add_flag("--json", arguments->asJson, "One JSON document on stdout");
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments); });
}

}  // namespace evenkeel::cli
