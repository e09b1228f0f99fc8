// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "app/cli/command.h"
#include "app/cli/describe.h"
#include "app/cli/follow.h"
#include "app/cli/go_on.h"
#include "app/cli/inputs.h"
#include "app/cli/login_prompt.h"
#include "core/base/words.h"
#include "core/cost/evaluate.h"
#include "core/profile/table_profile.h"
#include "launcher/discover/host_lists.h"
#include "launcher/job/features_of.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  std::string plan, profile, runFile, resume, board;
  std::vector<std::string> data, validation, environment;
  std::vector<std::int64_t> traceSteps;
  std::optional<std::int64_t> steps, seed, warmupSteps, checkpointEvery, checkpointKeep, evaluateEvery, evaluateBatches;
  std::optional<double> timeScale, learningRate, finalLearningRate, weightDecay, beta1, beta2, epsilon, gradientClip, dropout;
  std::optional<std::string> schedule, checkpointDirectory, onFailure, endCommand;
  std::string slurmLogin, slurmFolder, identity, knownHosts;
  std::vector<std::string> slurmOptions;
  bool slurm = false, local = false, rehearse = false, detach = false, dryRun = false, preflight = false, asJson = false;
};

/// A folder of this machine as an absolute path; one of another machine as it was given.
std::string placeFor(const std::string& path, bool local) {
  std::error_code failure;
  return local ? std::filesystem::absolute(path, failure).lexically_normal().string() : path;
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
  if (arguments.beta1 || arguments.beta2)
    json["betas"] = {arguments.beta1.value_or(Run{}.beta1), arguments.beta2.value_or(Run{}.beta2)};
  if (arguments.finalLearningRate) json["learning_rate"]["final"] = *arguments.finalLearningRate;
  if (arguments.epsilon) json["epsilon"] = *arguments.epsilon;
  if (arguments.checkpointEvery) json["checkpoint"]["every"] = *arguments.checkpointEvery;
  if (arguments.checkpointKeep) json["checkpoint"]["keep"] = *arguments.checkpointKeep;
  if (arguments.checkpointDirectory) json["checkpoint"]["directory"] = placeFor(*arguments.checkpointDirectory, arguments.local);
  if (!arguments.data.empty()) json["data"]["train"] = arguments.data;
  if (!arguments.validation.empty()) json["data"]["validation"] = arguments.validation;
  if (arguments.evaluateEvery) json["evaluate_every"] = *arguments.evaluateEvery;
  if (arguments.evaluateBatches) json["evaluate_batches"] = *arguments.evaluateBatches;
  if (!arguments.traceSteps.empty()) json["trace_steps"] = arguments.traceSteps;
  if (arguments.rehearse) json["rehearsal"]["time_scale"] = arguments.timeScale.value_or(1.0);
  if (arguments.onFailure) json["on_failure"] = *arguments.onFailure;
  if (arguments.endCommand) json["end_command"] = *arguments.endCommand;
  for (const std::string& setting : arguments.environment) {
    const std::size_t equals = setting.find('='), colon = setting.substr(0, equals).find(':');
    if (equals == std::string::npos)
      return invalidInput("--env " + setting, "sets nothing", "expected NAME=VALUE or NODE:NAME=VALUE");
    if (colon == std::string::npos) json["environment"][setting.substr(0, equals)] = setting.substr(equals + 1);
    else
      json["environment"][setting.substr(0, colon)][setting.substr(colon + 1, equals - colon - 1)] = setting.substr(equals + 1);
  }

  JsonContext context{source, {}};
  JsonReader reader(json, context);
  Run run = readRun(reader);
  if (context.error) return *std::move(context.error);
  if (run.train.empty() && !run.rehearsal) return invalidInput(source, "names no training data", "add --data FILE or --data FOLDER");
  if (!run.validation.empty() && run.evaluation.every == 0)
    return invalidInput(source, "names validation text and no step at which it is read", "add --evaluate-every N");
  for (const std::int64_t step : run.traceSteps) {
    if (step > run.steps) return invalidInput(fmt::format("--trace-step {}", step), fmt::format("the run ends with step {}", run.steps), "name a step that it has");
  }
  if (run.rehearsal && (!arguments.resume.empty() || run.checkpoint.every > 0 || run.evaluation.every > 0))
    return invalidInput("--rehearse", "computes nothing that could be resumed, saved or evaluated",
                        "leave out --resume, --checkpoint-every and --evaluate-every");
  return run;
}

/// A plan that is valid and that the runtime can execute, or every reason why not.
Result<Plan> launchablePlan(const Arguments& arguments, bool dropout) {
  const std::string& file = arguments.plan;
  auto plan = loadPlan(file);
  if (!plan) return plan;
  const auto profile = profileFromArgument(arguments.profile, plan->cluster, plan->model, plan->training, {.dropout = dropout && !arguments.rehearse});
  if (!profile) return profile.error();
  Evaluation evaluation = evaluate(*plan, **profile);
  auto& violations = evaluation.violations;
  if (violations.empty() && !arguments.rehearse && !arguments.preflight) violations = notLaunchable(*plan, featuresOf(programFolder()));
  if (!violations.empty()) {
    return invalidInput(file, "cannot be launched",
                        fmt::format("{}:\n{}", counted(violations.size(), "reason"), describe(violations)));
  }
  if (!plan->inputsSha256.empty() && plan->inputsSha256 != inputsHash(plan->cluster, plan->model, plan->training)) {
    note("warning: {} is stale: its cluster, model or training was changed after it was planned\n", file);
  }
  // What is rehearsed are the times that are predicted now; a plan that is trained stays as it is.
  return arguments.rehearse ? std::move(evaluation.plan) : *std::move(plan);
}

/// Nothing without --slurm.
Result<std::optional<SlurmRequest>> slurmFrom(const Arguments& arguments) {
  if (!arguments.slurm) {
    if (!arguments.slurmLogin.empty() || !arguments.slurmFolder.empty() || !arguments.slurmOptions.empty())
      return invalidInput("launch", "takes --slurm-login, --slurm-folder and --slurm-option for Slurm only", "add --slurm");
    return std::optional<SlurmRequest>();
  }
  if (arguments.local) return invalidInput("--slurm", "and --local exclude each other", "leave one of them out");
  SlurmRequest request;
  if (!arguments.slurmLogin.empty()) {
    auto hosts = parseHosts(arguments.slurmLogin);
    if (!hosts) return invalidInput("--slurm-login", hosts.error().what, hosts.error().remedy);
    if (hosts->size() != 1) return invalidInput("--slurm-login", "names more than one machine", "expected [USER@]HOST[:PORT]");
    request.login = hosts->front().ssh;
    request.login.identity = arguments.identity;
    request.login.knownHosts = arguments.knownHosts;
  }
  if (!arguments.slurmFolder.empty() && !arguments.slurmFolder.starts_with('/'))
    return invalidInput("--slurm-folder " + arguments.slurmFolder, "is no absolute path", "expected a folder that login node and nodes share");
  request.folder = arguments.slurmFolder;
  for (const std::string& option : arguments.slurmOptions) {
    const std::size_t equals = option.find('=');
    request.options.emplace_back(option.substr(0, equals), equals == std::string::npos ? "" : option.substr(equals + 1));
  }
  return std::optional(std::move(request));
}

Result<LaunchRequest> requestFrom(const Arguments& arguments) {
  if (arguments.rehearse && !arguments.local) return invalidInput("--rehearse", "needs one clock for all ranks", "add --local");
  if (!arguments.rehearse && (arguments.timeScale || !arguments.profile.empty()))
    return invalidInput("launch", "takes --time-scale and --profile for a rehearsal only", "add --rehearse");
  if (arguments.onFailure && !onFailureNamed(*arguments.onFailure))
    return invalidInput("--on-failure", fmt::format("\"{}\" is unknown", *arguments.onFailure),
                        "expected stop, resume or replan");
  auto slurm = slurmFrom(arguments);
  if (!slurm) return std::move(slurm).error();
  auto run = runFrom(arguments);
  if (!run) return std::move(run).error();
  auto plan = launchablePlan(arguments, run->dropout > 0);
  if (!plan) return std::move(plan).error();
  LaunchRequest request;
  request.plan = *std::move(plan);
  request.run = *std::move(run);
  request.local = arguments.local;
  request.slurm = *std::move(slurm);
  if (!arguments.resume.empty()) request.resume = placeFor(arguments.resume, arguments.local);
  std::error_code unknown;
  if (arguments.local && !request.resume.empty() && !std::filesystem::is_directory(request.resume, unknown))
    return invalidInput("--resume " + arguments.resume, "is no folder",
                        "expected a checkpoint (step-0000000200), or a folder of checkpoints");
  if (request.run.onFailure != Run::OnFailure::Stop && request.run.checkpoint.every == 0)
    return invalidInput(fmt::format("--on-failure {}", name(request.run.onFailure)), "has nothing to go on from",
                        "add --checkpoint-every N");
  request.programs = programFolder();
  return request;
}

int dryRun(Launcher& launcher, const LaunchRequest& request, bool asJson) {
  const auto commands = launcher.dryRun(request);
  if (!commands) return report(commands.error());
  if (asJson) printJson({{"commands", *commands}});
  else
    for (const std::string& command : *commands) fmt::print("{}\n", command);
  return kOk;
}

/// Everything that a launch looks at before it sends anything, here and on all nodes; nothing is started.
int preflight(Launcher& launcher, const LaunchRequest& request, const Arguments& arguments) {
  FollowInterrupt interrupt;
  JobProgress progress(0);
  auto rows = launcher.preflight(request, progress, interrupt.token());
  if (!rows) return report(rows.error());
  if (!arguments.board.empty()) {
    const auto checked = checkOutputFolder("--tensorboard", arguments.board);
    rows->push_back({.node = "", .check = "tensorboard", .passed = checked.ok(), .detail = arguments.board + " can be written", .remedy = {}});
    if (!checked) rows->back().detail = checked.error().where + " " + checked.error().what;
    if (!checked) rows->back().remedy = checked.error().remedy;
    progress.onPreflight(rows->back());
  }
  // a worker that is not there yet cannot say what it cannot do
  const bool isTold = std::ranges::any_of(*rows, [](const PreflightRow& row) { return row.check == "features" && !row.passed; });
  const auto reasons = isTold || request.run.rehearsal ? std::vector<Violation>() : notLaunchable(request.plan, featuresOf(request.programs));
  for (const Violation& reason : reasons) {
    rows->push_back({.node = "", .check = "features", .passed = false, .detail = reason.where + ": " + reason.what, .remedy = reason.remedy});
    progress.onPreflight(rows->back());
  }
  if (arguments.asJson) {
    Json all = Json::array();
    for (const PreflightRow& row : *rows)
      all.push_back({{"node", row.node}, {"check", row.check}, {"passed", row.passed}, {"detail", row.detail}, {"remedy", row.remedy}});
    printJson({{"rows", std::move(all)}});
  }
  const auto objections = static_cast<std::size_t>(std::ranges::count(*rows, false, &PreflightRow::passed));
  if (objections == 0) return kOk;
  return report(failed("preflight", fmt::format("{} against a launch", counted(objections, "objection")), "the rows above say what to do"));
}

/// Says how a run is that goes on without us.
int leave(const Result<JobStatus>& status, const std::string& run, bool asJson) {
  if (!status) return report(status.error());
  if (asJson) printJson(toJson(*status));
  else fmt::print("{}\nfollow it: evenkeel-cli attach {}\n", describe(*status), run);
  return exitCodeOf(status->state);
}

/// Detached means: step 1 is done, so that what cannot start is still seen here; of a run that waits for Slurm, that Slurm has it.
int detach(Launcher& launcher, const std::string& run, const FollowInterrupt& interrupt, bool asJson) {
  struct FirstStep final : JobObserver {
    std::stop_source stop;
    void onStep(const StepRecord&) override { stop.request_stop(); }
  } first;
  const std::stop_callback onInterrupt(interrupt.token(), [&] { first.stop.request_stop(); });
  return leave(launcher.followJob(run, first, first.stop.get_token()), run, asJson);
}

/// A prediction supposes that nobody else computes here.
void noteLoad() {
  double load = 0;
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  if (::getloadavg(&load, 1) != 1 || load < cores) return;
  note("note: this machine is busy (load {:.0f} on {}): steps take longer than predicted\n", load, counted(cores, "core"));
}

int run(const Arguments& arguments) {
  auto request = requestFrom(arguments);
  if (!request) return report(request.error());
  auto launcher = openLauncher();
  if (!launcher) return report(launcher.error());
  if (arguments.preflight) return preflight(*launcher, *request, arguments);
  if (arguments.dryRun) return dryRun(*launcher, *request, arguments.asJson);

  if (request->local) noteLoad();
  FollowInterrupt interrupt;
  JobProgress progress(request->run.steps, request->run.rehearsal.has_value());
  if (!arguments.board.empty()) {
    if (auto made = progress.alsoInto(arguments.board); !made) return report(made.error());
  }
  const auto started = launcher->startJob(*request, progress, interrupt.token());
  progress.endLine();
  if (!started) return report(started.error());
  note("run {}\n", *started);
  if (arguments.detach && request->slurm) return leave(launcher->statusOf(*started), *started, arguments.asJson);
  if (arguments.detach) return detach(*launcher, *started, interrupt, arguments.asJson);
  return followToEnd(*launcher, *started, progress, interrupt, arguments.asJson);
}

}  // namespace

void addLaunch(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("launch", "Start the training that a plan describes, and follow it");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("plan", arguments->plan, "Plan file")->required();
  command->add_option("--data", arguments->data, "Text file or folder to train on, or tokens (NAME of NAME.bin and NAME.idx); may be given several times");
  command->add_option("--validation", arguments->validation, "Text file or folder to evaluate on; may be given several times");
  command->add_option("--evaluate-every", arguments->evaluateEvery, "Steps between evaluations (default: none)");
  command->add_option("--evaluate-batches", arguments->evaluateBatches, "Global batches that an evaluation reads (default 1)");
  command->add_option("--trace-step", arguments->traceSteps, "Step of which every rank reports what it did when (`trace` shows it); may be given several times")
      ->check(CLI::Range(1, 1'000'000'000));
  command->add_option("--steps", arguments->steps, "Steps (iterations) to train");
  command->add_option("--run", arguments->runFile, "Run file (evenkeel.run/1); options win over it");
  command->add_option("--learning-rate", arguments->learningRate, "Peak learning rate (default 1e-3)");
  command->add_option("--warmup-steps", arguments->warmupSteps, "Steps until the peak (default 10)");
  command->add_option("--schedule", arguments->schedule, "cosine (default), linear or constant, after the peak");
  command->add_option("--gradient-clip", arguments->gradientClip,
                      "Longest gradient of the whole model (default: as long as it is)");
  command->add_option("--dropout", arguments->dropout,
                      "Probability, after softmax and before each residual addition (default 0)");
  command->add_option("--final-learning-rate", arguments->finalLearningRate,
                      "Fraction of the peak at the last step (default 0.1)");
  command->add_option("--epsilon", arguments->epsilon, "AdamW (default 1e-8)");
  command->add_option("--checkpoint-every", arguments->checkpointEvery, "Steps between checkpoints (default: none)");
  command->add_option("--checkpoint-keep", arguments->checkpointKeep, "How many of the newest stay (default 3)");
  command->add_option("--checkpoint-directory", arguments->checkpointDirectory,
                      "Where, on the machine of rank 0 (default: in the run's directory)");
  command->add_option("--weight-decay", arguments->weightDecay, "Of tensors with two dimensions (default 0.1)");
  command->add_option("--beta1", arguments->beta1, "AdamW (default 0.9)");
  command->add_option("--beta2", arguments->beta2, "AdamW (default 0.95)");
  command->add_option("--seed", arguments->seed, "Of weights and sample order (default 1)");
  command->add_flag("--local", arguments->local, "Every node is this machine");
  command->add_flag("--slurm", arguments->slurm, "As a Slurm job: no SSH to the nodes, only to a login node, or none from there");
  command->add_option("--slurm-login", arguments->slurmLogin, "[USER@]HOST[:PORT] where sbatch is (default: this machine)");
  command->add_option("--slurm-option", arguments->slurmOptions,
                      "NAME=VALUE or NAME, an option of sbatch: partition=gpu, time=4:00:00, exclusive; may be given several times");
  command->add_option("--slurm-folder", arguments->slurmFolder,
                      "Folder that login node and nodes share, for programs and runs (default: below the home directory)");
  command->add_option("--identity", arguments->identity, "File of the private key for the login node (default: as ~/.ssh/config says)");
  command->add_option("--known-hosts", arguments->knownHosts, "File of the host keys that are trusted for it (default: ~/.ssh/known_hosts)");
  command->add_flag("--detach", arguments->detach, "Return once step 1 is done");
  command->add_flag("--dry-run", arguments->dryRun, "Only print the commands");
  command->add_flag("--preflight", arguments->preflight, "Only look at the nodes: everything that would stand against a launch, each with its way out");
  command->add_option("--on-failure", arguments->onFailure,
                      "stop (default); resume: go on from the last checkpoint on the same nodes; replan: without the node that "
                      "failed. A detached run goes on when somebody attaches");
  command->add_option("--end-command", arguments->endCommand,
                      "Shell line to run here when the run has ended (EVENKEEL_RUN, _STATE, _STEPS, _CAUSE, _NODE)");
  command->add_option("--env", arguments->environment,
                      "NAME=VALUE for all workers, NODE:NAME=VALUE for those of a node; may be given several times");
  command->add_flag("--rehearse", arguments->rehearse,
                    "Virtual devices: all ranks and messages, but what is predicted is slept, not computed (with --local)");
  command->add_option("--time-scale", arguments->timeScale, "Of a rehearsal: 0.1 plays ten times as fast (default 1)")
      ->check(CLI::Range(1e-6, 1e6));
  command->add_option("--profile", arguments->profile, "Of a rehearsal: measured op times to predict from (default: analytic)");
  command->add_option("--resume", arguments->resume,
                      "A checkpoint, or a folder of them, written under any plan of this model: go on from there");
  addBoardOption(*command, arguments->board);
  command->add_flag("--json", arguments->asJson, "One JSON document on stdout");
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments); });
}

}  // namespace evenkeel::cli
