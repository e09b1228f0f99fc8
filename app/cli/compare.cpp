// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stop_token>

#include "app/cli/command.h"
#include "app/cli/describe.h"
#include "app/cli/inputs.h"
#include "app/cli/interrupt.h"
#include "app/cli/search_progress.h"
#include "app/cli/table.h"
#include "core/profile/table_profile.h"
#include "core/report/compare_html.h"

namespace evenkeel::cli {
namespace {

using report::Compared;
using report::KeyFigures;
using report::keyFiguresOf;

/// Bars of all timelines together beyond which the report leaves the timelines out: a page must open in a browser.
constexpr std::int64_t kMostSteps = 4'000'000;

struct Arguments {
  ProblemArguments problem;
  SearchArguments search;
  std::vector<std::string> planners = {"optimal", "eth", "uniform"};
  std::string csv, html, outFolder;
  bool asJson = false;
};

Json jsonOf(const std::vector<Compared>& rows) {
  Json all = Json::array();
  for (const Compared& row : rows) {
    Json entry;
    entry["planner"] = row.planner;
    entry["state"] = report::stateOf(row);
    entry["feasible"] = row.evaluation.has_value();
    entry["reason"] = row.evaluation ? Json(nullptr) : Json(report::reasonOf(row));
    entry["plan"] = row.evaluation ? toJson(row.evaluation->plan) : Json(nullptr);
    entry["predicted"] = row.evaluation ? entry["plan"]["predicted"] : Json(nullptr);
    entry["bubble_fraction"] = row.evaluation ? Json(rounded(row.evaluation->bubbleFraction)) : Json(nullptr);
    const auto estimate = row.evaluation ? keyFiguresOf(*row.evaluation).ownEstimate : std::nullopt;
    entry["own_estimate_ms"] = estimate ? Json(rounded(milliseconds(*estimate))) : Json(nullptr);
    entry["search_seconds"] = rounded(row.search.value);
    entry["deviations"] = row.deviations;
    all.push_back(std::move(entry));
  }
  return {{"rows", all}};
}

std::string csvOf(const std::vector<Compared>& rows) {
  std::string text =
      "planner,feasible,iteration_ms,samples_per_s,mfu,pipelines,stages,idle_devices,bubble_fraction,search_seconds,reason,state,"
      "worst_memory,gap,own_estimate_ms\n";
  for (const Compared& row : rows) {
    if (!row.evaluation) {
      std::string reason = report::reasonOf(row);
      for (std::size_t at = 0; (at = reason.find('"', at)) != std::string::npos; at += 2) reason.insert(at, "\"");
      text += fmt::format("{},no,,,,,,,,{:.3f},\"{}\",{},,,\n", row.planner, row.search.value, reason, report::stateOf(row));
      continue;
    }
    const KeyFigures figures = keyFiguresOf(*row.evaluation);
    text +=
        fmt::format("{},yes,{},{},{},{},{},{},{},{:.3f},,{},{},{},{}\n", row.planner, rounded(milliseconds(figures.iteration)),
                    rounded(figures.samplesPerSecond), rounded(figures.mfu), figures.pipelines, figures.stages,
                    figures.idleDevices, rounded(figures.bubbleFraction), row.search.value, report::stateOf(row),
                    rounded(figures.worstMemory), figures.gap ? fmt::format("{}", rounded(*figures.gap)) : "",
                    figures.ownEstimate ? fmt::format("{}", rounded(milliseconds(*figures.ownEstimate))) : "");
  }
  return text;
}

void print(const std::vector<Compared>& rows) {
  const std::optional<Seconds> best = report::fastestOf(rows);
  std::vector<std::vector<std::string>> table = {{"planner", "iteration", "against best", "samples/s", "MFU", "pipelines",
                                                  "bubbles", "worst memory", "idle", "search", "own estimate"}};
  std::string reasons;
  for (const Compared& row : rows) {
    if (!row.evaluation) {
      table.push_back({row.planner, report::stateOf(row)});
      reasons += fmt::format("{}: {}\n", row.planner, report::reasonOf(row));
      continue;
    }
    const KeyFigures figures = keyFiguresOf(*row.evaluation);
    table.push_back({row.planner, shortTime(figures.iteration.value), fmt::format("{:.2f} x", figures.iteration / *best),
                     fmt::format("{:.4g}", figures.samplesPerSecond), figures.mfu > 0 ? fmt::format("{:.1f} %", 100 * figures.mfu) : "-",
                     fmt::format("{}", figures.pipelines), fmt::format("{:.1f} %", 100 * figures.bubbleFraction),
                     fmt::format("{:.0f} %", 100 * figures.worstMemory), fmt::format("{}", figures.idleDevices),
                     shortTime(row.search.value), figures.ownEstimate ? shortTime(figures.ownEstimate->value) : ""});
    if (!figures.stopped.empty())
      reasons += fmt::format("{}: ended by {}, the best plan until then\n", row.planner, figures.stopped);
  }
  fmt::print("{}{}", alignedTable(table), reasons);
}

Result<void> writePlans(const std::string& folder, const std::vector<Compared>& rows) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return invalidInput("--out-dir " + folder, failure.message());
  for (const Compared& row : rows) {
    if (!row.evaluation) continue;
    auto written =
        writeFileAtomically(std::filesystem::path(folder) / (row.planner + ".json"), prettyText(toJson(row.evaluation->plan)));
    if (!written) return written;
  }
  return {};
}

Result<void> checkOptions(const std::vector<const Planner*>& planners, const PlannerOptions& options) {
  for (const auto& [name, value] : options) {
    const bool isKnown = std::ranges::any_of(planners, [&](const Planner* planner) {
      return !optionsFor(*planner, {{name, value}}).empty();
    });
    if (!isKnown) return invalidInput("--planner-option " + name, "none of the planners has such an option");
  }
  return {};
}

/// A timeline has two bars a stage and micro-batch, and waits and sends besides.
std::int64_t stepsOf(const Plan& plan) {
  std::int64_t steps = 0;
  for (const Pipeline& pipeline : plan.pipelines) steps += 4 * std::ssize(pipeline.stages) * pipeline.microBatchCount();
  return steps;
}

/// One planner after the other, each with all threads and the same limits.
Result<report::CompareReport> search(const Arguments& arguments) {
  for (const auto& [option, file] : {std::pair{"--csv", &arguments.csv}, {"--html", &arguments.html}}) {
    if (auto checked = checkOutput(option, *file); !checked) return checked.error();
  }
  if (auto checked = checkOutputFolder("--out-dir", arguments.outFolder); !checked) return checked.error();
  auto problem = problemFrom(arguments.problem);
  if (!problem) return std::move(problem).error();
  auto budget = budgetFrom(arguments.search);
  if (!budget) return std::move(budget).error();
  auto options = plannerOptionsFrom(arguments.search);
  if (!options) return std::move(options).error();
  std::vector<const Planner*> chosen;
  for (const std::string& name : arguments.planners) {
    if (name == "all") {
      chosen.clear();
      for (const Planner& planner : planners()) chosen.push_back(&planner);
      break;
    }
    const auto planner = plannerNamed(name);
    if (!planner) return invalidInput("--planners", planner.error().what, planner.error().remedy);
    chosen.push_back(*planner);
  }
  if (auto checked = checkOptions(chosen, *options); !checked) return checked.error();
  printDefaults(arguments.problem, *problem);

  const auto profile = profileFromArgument(arguments.problem.profile, problem->cluster, problem->model, problem->training);
  if (!profile) return profile.error();
  std::stop_source stop;
  const InterruptWatch watch([&](int) { stop.request_stop(); });
  report::CompareReport all{*problem, (*profile)->description(), {}, {}};
  for (const Planner* planner : chosen) {
    SearchProgress progress(planner->name);
    const auto start = std::chrono::steady_clock::now();
    const auto plan =
        planner->plan({*problem, profile->get(), *budget, optionsFor(*planner, *options)}, progress, stop.get_token());
    progress.finish();
    if (!plan && plan.error().code == Error::Code::InvalidInput) return plan.error();
    Compared one{planner->name, planner->summary, planner->deviations, {}, {}, {}};
    one.search = {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
    if (plan) {
      // A plan may come with a cluster of its own (metis with memory=ignore), and with a bound that its planner proved.
      const CostModel model(plan->cluster, plan->model, plan->training, **profile);
      one.evaluation =
          evaluate(model, *plan, plan->predicted->lowerBound, !arguments.html.empty() && stepsOf(*plan) <= kMostSteps);
    } else {
      one.error = plan.error();
    }
    all.planners.push_back(std::move(one));
  }
  return all;
}

int run(const Arguments& arguments, const std::vector<std::string>& words) {
  auto compared = search(arguments);
  if (!compared) return report(compared.error());
  compared->command = report::shellText(words);
  const std::vector<Compared>& rows = compared->planners;
  if (!arguments.csv.empty()) {
    if (auto written = writeFileAtomically(arguments.csv, csvOf(rows)); !written) return report(written.error());
  }
  if (!arguments.html.empty()) {
    if (auto written = writeFileAtomically(arguments.html, report::compareHtml(*compared)); !written)
      return report(written.error());
  }
  if (!arguments.outFolder.empty()) {
    if (auto written = writePlans(arguments.outFolder, rows); !written) return report(written.error());
  }
  arguments.asJson ? printJson(jsonOf(rows)) : print(rows);
  if (report::fastestOf(rows)) return kOk;
  if (std::ranges::any_of(rows, [](const Compared& row) { return report::stateOf(row) == "stopped"; }))
    return report(Error{Error::Code::Cancelled, "compare", "ended before any planner had a plan", "search longer"});
  return report(infeasible("compare", "no planner found a plan", "the reasons are above"));
}

}  // namespace

void addCompare(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("compare", "What several planners make of the same cluster and model");
  auto arguments = std::make_shared<Arguments>();
  addProblemOptions(*command, arguments->problem);
  std::string names;
  for (const Planner& planner : planners()) names += (names.empty() ? "" : ",") + planner.name;
  command
      ->add_option("--planners", arguments->planners, "Planners, separated by commas, or all (default optimal,eth,uniform; known: " + names + ")")
      ->delimiter(',');
  addSearchOptions(*command, arguments->search);
  command->add_option("--csv", arguments->csv, "Write the key figures to this file");
  command->add_option("--html", arguments->html, "Write a report with pictures to this file; it needs no other file");
  command->add_option("--out-dir", arguments->outFolder, "Write each plan to PLANNER.json in this folder");
  command->add_flag("--json", arguments->asJson, "One JSON document on stdout");
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments, outcome.words); });
}

}  // namespace evenkeel::cli
