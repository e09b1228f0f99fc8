// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include "app/cli/command.h"
#include "app/cli/describe.h"
#include "app/cli/inputs.h"
#include "core/base/words.h"
#include "core/cost/evaluate.h"
#include "core/profile/table_profile.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  std::string plan, profile;
  bool asJson = false;
};

int run(const Arguments& arguments) {
  const auto plan = loadPlan(arguments.plan);
  if (!plan) return report(plan.error());
  const auto profile = profileFromArgument(arguments.profile, plan->cluster, plan->model, plan->training);
  if (!profile) return report(profile.error());
  const auto violations = evaluate(*plan, **profile, false).violations;
  const bool isStale = !plan->inputsSha256.empty() && plan->inputsSha256 != inputsHash(plan->cluster, plan->model, plan->training);
  if (isStale) note("note: {} is stale: its cluster, model or training was changed after it was planned\n", arguments.plan);
  if (arguments.asJson) {
    printJson({{"valid", violations.empty()}, {"stale", isStale}, {"violations", toJson(violations)}});
    if (!violations.empty()) note("error: {}: {}\n", arguments.plan, counted(violations.size(), "violation"));
  } else if (violations.empty()) {
    std::size_t stages = 0;
    for (const Pipeline& pipeline : plan->pipelines) stages += pipeline.stages.size();
    fmt::print("{}: valid; {}, {}, {} of {}, {} an iteration\n", arguments.plan, counted(plan->pipelines.size(), "pipeline"),
               counted(stages, "stage"), plan->usedDevices().size(), counted(static_cast<std::size_t>(plan->cluster.deviceCount()), "device"),
               counted(static_cast<std::size_t>(plan->training.globalBatch), "sample"));
  } else {
    note("error: {}: {}\n{}", arguments.plan, counted(violations.size(), "violation"), describe(violations));
  }
  return violations.empty() ? kOk : kFailed;
}

}  // namespace

void addCheck(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("check", "The invariants of a plan: what is broken, and where");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("plan", arguments->plan, "Plan file")->required();
  addProfileOption(*command, arguments->profile);
  command->add_flag("--json", arguments->asJson, "One JSON document on stdout");
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments); });
}

}  // namespace evenkeel::cli
