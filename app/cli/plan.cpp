// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <functional>
#include <stop_token>

#include "app/cli/command.h"
#include "app/cli/describe.h"
#include "app/cli/follow.h"
#include "app/cli/inputs.h"
#include "app/cli/interrupt.h"
#include "app/cli/search_progress.h"
#include "app/cli/table.h"
#include "core/profile/table_profile.h"
#include "core/search/explain/reasons.h"
#include "core/search/hexiscale/original.h"
#include "core/search/metis/original_json.h"
#include "core/search/run_cost.h"
#include "core/search/warm_start.h"
#include "launcher/job/features_of.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  ProblemArguments problem;
  SearchArguments search;
  std::string planner = "optimal", out, events, metisCase, hexiscaleCase, start;
  bool asJson = false, explain = false;
  std::string objective = "time";
  std::optional<std::int64_t> steps, tokens;
  double deadlineHours = 0;
};

Result<Goal> goalFrom(const Arguments& arguments, const Training& training) {
  Goal goal;
  std::string known;
  bool isKnown = false;
  for (const auto& [word, objective] : objectiveWords()) {
    if (word == arguments.objective) goal.objective = objective;
    isKnown = isKnown || word == arguments.objective;
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  if (!isKnown)
    return invalidInput("--objective", fmt::format("\"{}\" is unknown", arguments.objective), "expected one of: " + known);
  for (const auto& [option, value] : {std::pair{"--steps", &arguments.steps}, {"--tokens", &arguments.tokens}}) {
    if (*value && (**value < 1 || **value > std::int64_t{1} << 60))
      return invalidInput(option, fmt::format("is {}", **value), "expected a whole number above 0");
  }
  if (arguments.steps && arguments.tokens) return invalidInput("--tokens", "is given beside --steps", "one of them is enough");
  const bool wantsDeadline = goal.objective == Objective::Deadline;
  if (wantsDeadline && !(arguments.deadlineHours > 0 && arguments.deadlineHours < 1e9))
    return invalidInput("--deadline-hours", fmt::format("is {}", arguments.deadlineHours), "expected a number of hours above 0");
  if (!wantsDeadline && arguments.deadlineHours != 0)
    return invalidInput("--deadline-hours", "is given without --objective deadline", "add --objective deadline");
  goal.steps = arguments.steps ? *arguments.steps : arguments.tokens ? stepsFor(*arguments.tokens, training) : 0;
  goal.deadline = Seconds{3600 * arguments.deadlineHours};
  return goal;
}

/// `events`: whether all of them could be written; the plan counts all the same.
Result<Plan> findPlan(const Arguments& arguments, Result<void>& events) {
  if (auto checked = checkOutputs({{"--out", arguments.out}, {"--events", arguments.events}}); !checked) return checked.error();
  for (const auto& [name, value] : {std::pair{"--cluster", &arguments.problem.cluster}, {"--model", &arguments.problem.model}}) {
    if (value->empty()) return invalidInput(name, "is required");
  }
  auto problem = problemFrom(arguments.problem);
  if (!problem) return std::move(problem).error();
  const auto planner = plannerNamed(arguments.planner);
  if (!planner) return planner.error();
  auto budget = budgetFrom(arguments.search);
  if (!budget) return std::move(budget).error();
  auto options = plannerOptionsFrom(arguments.search);
  if (!options) return std::move(options).error();
  const auto goal = goalFrom(arguments, problem->training);
  if (!goal) return goal.error();
  printDefaults(arguments.problem, *problem);

  SearchProgress progress(arguments.planner);
  if (!arguments.events.empty()) {
    if (auto opened = progress.writeEventsTo(arguments.events); !opened) return opened.error();
  }
  const auto profile = profileFromArgument(arguments.problem.profile, problem->cluster, problem->model, problem->training);
  if (!profile) return profile.error();
  std::stop_source stop;
  const InterruptWatch watch([&](int) { stop.request_stop(); });
  std::optional<Plan> start;
  if (!arguments.start.empty()) {
    auto loaded = loadPlan(arguments.start);
    if (!loaded) return loaded.error();
    if (auto checked = checkStart(arguments.planner, *loaded, *problem); !checked) return checked.error();
    if (const std::string lost = notCarriedOver(arguments.planner, *loaded, *problem); !lost.empty()) note("note: --start: {}\n", lost);
    start = *std::move(loaded);
  }
  const SearchTask task{*problem, profile->get(), *std::move(budget), *std::move(options), start ? &*start : nullptr};
  auto plan = planFor(*goal, **planner, task, progress, stop.get_token());
  progress.finish();
  events = progress.eventsWritten();
  if (plan && goal->objective != Objective::Time) plan->search["objective"] = arguments.objective;
  if (plan && goal->steps > 0) plan->search["run"] = toJson(runCost(*plan, goal->steps));
  return plan;
}

/// Public Metis on a recorded case, to test that our account of it is right.
Result<Json> replayMetis(const Arguments& arguments) {
  if (auto checked = checkOutput("--out", arguments.out); !checked) return checked.error();
  const auto options = plannerOptionsFrom(arguments.search);
  if (!options) return options.error();
  const auto exact = options->find("exact");
  if (arguments.planner != "metis" || exact == options->end() || exact->second != "true")
    return invalidInput("--metis-case", "is for one planner only", "add --planner metis --planner-option exact=true");
  if (arguments.problem.profile.empty())
    return invalidInput("--profile", "is missing", "name the folder of the case's DeviceType.<T>_tp<t>_bs<b>.json");
  const auto given = metis::loadOriginalCase(arguments.metisCase, arguments.problem.profile);
  if (!given) return given.error();
  std::stop_source stop;
  const InterruptWatch watch([&](int) { stop.request_stop(); });
  const auto plans = metis::searchAsOriginal(*given, stop.get_token());
  if (plans.empty()) return infeasible("metis", "the original finds no plan for this case");
  return metis::documentOf(*given, plans);
}

/// Public HexiScale on a recorded case, with the METIS answers that it got.
Result<Json> replayHexiscale(const Arguments& arguments) {
  if (auto checked = checkOutput("--out", arguments.out); !checked) return checked.error();
  const auto options = plannerOptionsFrom(arguments.search);
  if (!options) return options.error();
  const auto exact = options->find("exact");
  const bool asShipped = exact == options->end() || exact->second == "true";
  if (arguments.planner != "hexiscale" || options->size() > (exact == options->end() ? 0U : 1U) ||
      (!asShipped && exact->second != "false"))
    return invalidInput("--hexiscale-case", "is for one planner only",
                        "add --planner hexiscale, with --planner-option exact=true|false or without");
  const auto given = hexiscale::loadOriginalCase(arguments.hexiscaleCase);
  if (!given) return given.error();
  const auto iterations = hexiscale::replay(*given, asShipped ? hexiscale::Batching::AsShipped : hexiscale::Batching::Consistent);
  if (!iterations) return iterations.error();
  return hexiscale::documentOf(*given, *iterations);
}

/// Writes what a replay gave; for people, with the lines that `print` makes of it.
int giveReplay(const Arguments& arguments, const Result<Json>& document, const std::function<void(const Json& original)>& print) {
  if (!document) return report(document.error());
  if (!arguments.out.empty()) {
    if (auto written = writeFileAtomically(arguments.out, prettyText(*document)); !written) return report(written.error());
  }
  if (arguments.asJson) printJson(*document);
  else print(document->at("search").at("original"));
  return kOk;
}

int runHexiscaleCase(const Arguments& arguments) {
  return giveReplay(arguments, replayHexiscale(arguments), [](const Json& original) {
    for (const Json& one : original.at("iterations")) {
      fmt::print("{:10.1f} tokens/s ", one.at("throughput").get<double>());
      for (const Json& pipeline : one.at("pipelines"))
        fmt::print(" | stages {} layers {}", pipeline.at("stages").dump(), pipeline.at("layers").dump());
      fmt::print("\n");
    }
  });
}

int runMetisCase(const Arguments& arguments) {
  return giveReplay(arguments, replayMetis(arguments), [](const Json& original) {
    for (const Json& line : original.at("ranked")) fmt::print("{}\n", line.get<std::string>());
  });
}

/// Sentences about the plan, each from evaluating it changed; empty where it was not asked for.
std::vector<Reason> reasonsOf(const Arguments& arguments, const Plan& plan) {
  if (!arguments.explain) return {};
  const auto profile = profileFromArgument(arguments.problem.profile, plan.cluster, plan.model, plan.training);
  return profile ? reasonsFor(plan, **profile) : std::vector<Reason>{};
}

Json jsonOf(const std::vector<Reason>& reasons) {
  Json all = Json::array();
  for (const Reason& reason : reasons) {
    Json one = {{"about", name(reason.about)}, {"sentence", reason.sentence}};
    if (reason.iteration) one["iteration_ms"] = rounded(milliseconds(*reason.iteration));
    all.push_back(std::move(one));
  }
  return all;
}

/// "10000 steps (1.3e+09 tokens): 25.1 h, 200 device-hours, price 310; ..."; empty where no length of the run was given.
std::string runLine(const Plan& plan) {
  if (!plan.search.contains("run")) return {};
  const RunCost cost = runCost(plan, plan.search["run"]["steps"].get<std::int64_t>());
  std::string text = fmt::format("{} steps ({:.4g} tokens): {:.4g} h, {:.4g} device-hours", cost.steps, cost.tokens,
                                 cost.duration.value / 3600, cost.deviceHours);
  text += cost.price ? fmt::format(", price {:.4g}", *cost.price) : fmt::format(", price not known ({} has none)", cost.unpriced);
  const Json& incumbents = plan.search["incumbents"];
  if (incumbents.size() > 1) {
    const double saved = static_cast<double>(cost.steps) *
                         (incumbents.front()["iteration_ms"].get<double>() / 1e3 - plan.predicted->iteration.value);
    if (saved > 0)
      text += fmt::format("; searching took {} and saves {:.4g} h against the first plan found",
                          shortTime(plan.search.value("seconds", 0.0)), saved / 3600);
  }
  return text + "\n";
}

/// What the devices hold, beside an error that says that it is too little.
void noteWhatFits(const Arguments& arguments, const Error& error) {
  if (!arguments.explain || error.code != Error::Code::Infeasible) return;
  const auto problem = problemFrom(arguments.problem);
  if (!problem) return;
  const auto profile = profileFromArgument(arguments.problem.profile, problem->cluster, problem->model, problem->training);
  if (!profile) return;
  for (const std::string& sentence : whatFits(*problem, **profile)) note("  {}\n", sentence);
}

int run(const Arguments& arguments) {
  if (!arguments.metisCase.empty()) return runMetisCase(arguments);
  if (!arguments.hexiscaleCase.empty()) return runHexiscaleCase(arguments);
  Result<void> events;
  const auto plan = findPlan(arguments, events);
  if (!plan) {
    const int code = report(plan.error());
    noteWhatFits(arguments, plan.error());
    return code;
  }
  const std::vector<Reason> reasons = reasonsOf(arguments, *plan);
  if (!arguments.out.empty()) {
    if (auto written = writeFileAtomically(arguments.out, prettyText(toJson(*plan))); !written) return report(written.error());
  }
  if (arguments.asJson) {
    Json document = toJson(*plan);
    if (arguments.explain) document["explanation"] = jsonOf(reasons);
    printJson(document);
    return events ? kOk : report(events.error());
  }
  fmt::print("{}   {}   in {}\n\n{}", arguments.planner, headline(*plan), shortTime(plan->search.value("seconds", 0.0)),
             describePlan(*plan));
  fmt::print("{}", runLine(*plan));
  if (!reasons.empty()) fmt::print("\nwhy this plan:\n");
  for (const Reason& reason : reasons) fmt::print("  {}\n", reason.sentence);
  if (!arguments.out.empty()) {
    const bool runs = notLaunchable(*plan, featuresOf(programFolder())).empty();
    fmt::print("\nwritten: {}; next: evenkeel-cli {} {} {}\n", arguments.out, runs ? "launch" : "evaluate", arguments.out,
               runs ? "--data FILE --steps N" : "--explain (it cannot be trained here)");
  }
  return events ? kOk : report(events.error());
}

}  // namespace

void addPlan(CLI::App& app, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("plan", "Find a plan: pipelines, stages, layers, micro-batches for a model on a cluster");
  auto arguments = std::make_shared<Arguments>();
  addProblemOptions(*command, arguments->problem);
  for (const char* const name : {"--cluster", "--model"})
    command->get_option(name)->required(false);  // a recorded case has its own
  std::string names;
  for (const Planner& planner : planners()) names += (names.empty() ? "" : ", ") + planner.name;
  command->add_option("--planner", arguments->planner, "One of: " + names + " (default optimal)");
  addSearchOptions(*command, arguments->search);
  command->add_option("--metis-case", arguments->metisCase,
                      "A recorded case of public Metis (case.json, hostfile, clusterfile.json) for --planner-option exact=true");
  command->add_option(
      "--hexiscale-case", arguments->hexiscaleCase,
      "A recorded case of public HexiScale (case.json, machines.json, metis_calls.jsonl) for --planner hexiscale");
  command->add_option("--objective", arguments->objective,
                      "time, cost (cheapest a token) or deadline (cheapest in time); default time");
  command->add_option("--steps", arguments->steps, "Length of the run: says its hours, device-hours and price");
  command->add_option("--tokens", arguments->tokens, "Length of the run in tokens, instead of --steps");
  command->add_option("--deadline-hours", arguments->deadlineHours, "With --objective deadline: hours within which the run ends");
  command->add_option("--start", arguments->start,
                      "Start from this plan, made before the cluster or the training changed (optimal, eth)");
  command->add_option("--out", arguments->out, "Write the plan to this file");
  command->add_option("--events", arguments->events, "Write every event of the search to this file, one JSON object a line");
  command->add_flag("--explain", arguments->explain, "Why this plan, or why none: what changes of it would take, each evaluated");
  command->add_flag("--json", arguments->asJson, "The plan as one JSON document on stdout");
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments); });
}

}  // namespace evenkeel::cli
