// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <filesystem>
#include <stop_token>

#include "app/cli/command.h"
#include "app/cli/describe.h"
#include "app/cli/inputs.h"
#include "app/cli/interrupt.h"
#include "app/cli/search_progress.h"
#include "app/cli/table.h"
#include "core/profile/table_profile.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  ProblemArguments problem;
  SearchArguments search;
  std::vector<std::string> planners = {"eth", "uniform"};
  std::string csv, html, outFolder;
  bool asJson = false;
};

/// What one planner answered.
struct Row {
  const Planner* planner = nullptr;
  Result<Plan> plan;
  double seconds = 0;
};

std::string worstMemory(const Plan& plan) {
  double worst = 0;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      if (!stage.predicted) continue;
      const double capacity = static_cast<double>(stage.predicted->memory.capacity.value);
      worst = std::max(worst, static_cast<double>(stage.predicted->memory.total().value) / capacity);
    }
  }
  return fmt::format("{:.0f} %", 100 * worst);
}

/// Share of time in bubbles over the stages of all pipelines.
double bubbles(const Plan& plan) {
  double sum = 0, stages = 0;
  for (const Pipeline& pipeline : plan.pipelines) {
    sum += pipeline.bubbleFraction * static_cast<double>(pipeline.stages.size());
    stages += static_cast<double>(pipeline.stages.size());
  }
  return stages > 0 ? sum / stages : 0;
}

Json jsonOf(const std::vector<Row>& rows) {
  Json all = Json::array();
  for (const Row& row : rows) {
    Json entry;
    entry["planner"] = row.planner->name;
    entry["feasible"] = row.plan.ok();
    entry["reason"] = row.plan.ok() ? Json(nullptr) : Json(row.plan.error().text());
    entry["plan"] = row.plan.ok() ? toJson(*row.plan) : Json(nullptr);
    entry["predicted"] = row.plan.ok() ? entry["plan"]["predicted"] : Json(nullptr);
    entry["search_seconds"] = rounded(row.seconds);
    entry["deviations"] = row.planner->deviations;
    all.push_back(std::move(entry));
  }
  return {{"rows", all}};
}

std::string csvOf(const std::vector<Row>& rows) {
  std::string text = "planner,feasible,iteration_ms,samples_per_s,mfu,pipelines,stages,idle_devices,bubble_fraction,search_seconds,reason\n";
  for (const Row& row : rows) {
    if (!row.plan) {
      std::string reason = row.plan.error().text();
      for (std::size_t at = 0; (at = reason.find('"', at)) != std::string::npos; at += 2) reason.insert(at, "\"");
      text += fmt::format("{},no,,,,,,,,{:.3f},\"{}\"\n", row.planner->name, row.seconds, reason);
      continue;
    }
    std::size_t stages = 0;
    for (const Pipeline& pipeline : row.plan->pipelines) stages += pipeline.stages.size();
    text += fmt::format("{},yes,{},{},{},{},{},{},{},{:.3f},\n", row.planner->name, rounded(milliseconds(row.plan->predicted->iteration)),
                        rounded(row.plan->predicted->samplesPerSecond), rounded(row.plan->predicted->mfu), row.plan->pipelines.size(), stages,
                        row.plan->idleDevices().size(), rounded(bubbles(*row.plan)), row.seconds);
  }
  return text;
}

void print(const std::vector<Row>& rows) {
  std::optional<double> best;
  for (const Row& row : rows) {
    if (row.plan && (!best || row.plan->predicted->iteration.value < *best)) best = row.plan->predicted->iteration.value;
  }
  std::vector<std::vector<std::string>> table = {{"planner", "iteration", "against best", "samples/s", "MFU", "pipelines", "bubbles", "worst memory", "idle", "search"}};
  std::string reasons;
  for (const Row& row : rows) {
    if (!row.plan) {
      table.push_back({row.planner->name, "infeasible"});
      reasons += fmt::format("{}: {}\n", row.planner->name, row.plan.error().text());
      continue;
    }
    const PlanPrediction& predicted = *row.plan->predicted;
    table.push_back({row.planner->name, shortTime(predicted.iteration.value), fmt::format("{:.2f} x", predicted.iteration.value / *best),
                     fmt::format("{:.4g}", predicted.samplesPerSecond), fmt::format("{:.1f} %", 100 * predicted.mfu),
                     fmt::format("{}", row.plan->pipelines.size()), fmt::format("{:.1f} %", 100 * bubbles(*row.plan)), worstMemory(*row.plan),
                     fmt::format("{}", row.plan->idleDevices().size()), shortTime(row.seconds)});
  }
  fmt::print("{}{}", alignedTable(table), reasons);
}

Result<void> writePlans(const std::string& folder, const std::vector<Row>& rows) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return invalidInput("--out-dir " + folder, failure.message());
  for (const Row& row : rows) {
    if (!row.plan) continue;
    auto written = writeFileAtomically(std::filesystem::path(folder) / (row.planner->name + ".json"), prettyText(toJson(*row.plan)));
    if (!written) return written;
  }
  return {};
}

Result<std::vector<Row>> search(const Arguments& arguments) {
  if (auto checked = checkOutput("--csv", arguments.csv); !checked) return checked.error();
  auto problem = problemFrom(arguments.problem);
  if (!problem) return std::move(problem).error();
  auto budget = budgetFrom(arguments.search);
  if (!budget) return std::move(budget).error();
  auto options = plannerOptionsFrom(arguments.search);
  if (!options) return std::move(options).error();
  std::vector<const Planner*> chosen;
  for (const std::string& name : arguments.planners) {
    const auto planner = plannerNamed(name);
    if (!planner) return planner.error();
    chosen.push_back(*planner);
  }
  printDefaults(arguments.problem, *problem);

  const auto profile = profileFromArgument(arguments.problem.profile, problem->cluster, problem->model, problem->training);
  if (!profile) return profile.error();
  std::stop_source stop;
  const InterruptWatch watch([&](int) { stop.request_stop(); });
  std::vector<Row> rows;
  for (const Planner* planner : chosen) {
    SearchProgress progress(planner->name);
    const auto start = std::chrono::steady_clock::now();
    auto plan = planner->plan({*problem, profile->get(), *budget, *options}, progress, stop.get_token());
    progress.finish();
    if (!plan && plan.error().code == Error::Code::InvalidInput) return std::move(plan).error();
    rows.push_back({planner, std::move(plan), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
  }
  return rows;
}

int run(const Arguments& arguments) {
  if (!arguments.html.empty()) return report(notYet("--html"));
  const auto rows = search(arguments);
  if (!rows) return report(rows.error());
  if (!arguments.csv.empty()) {
    if (auto written = writeFileAtomically(arguments.csv, csvOf(*rows)); !written) return report(written.error());
  }
  if (!arguments.outFolder.empty()) {
    if (auto written = writePlans(arguments.outFolder, *rows); !written) return report(written.error());
  }
  arguments.asJson ? printJson(jsonOf(*rows)) : print(*rows);
  const bool anyFeasible = std::ranges::any_of(*rows, [](const Row& row) { return row.plan.ok(); });
  return anyFeasible ? kOk : report(infeasible("compare", "no planner found a plan", "the reasons are above"));
}

}  // namespace

void addCompare(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("compare", "What several planners make of the same cluster and model");
  auto arguments = std::make_shared<Arguments>();
  addProblemOptions(*command, arguments->problem);
  command->add_option("--planners", arguments->planners, "Planners, separated by commas (default eth,uniform)")->delimiter(',');
  addSearchOptions(*command, arguments->search);
  command->add_option("--csv", arguments->csv, "Write the key figures to this file");
  command->add_option("--html", arguments->html, "Write a report with pictures (not there yet)");
  command->add_option("--out-dir", arguments->outFolder, "Write each plan to PLANNER.json in this folder");
  command->add_flag("--json", arguments->asJson, "One JSON document on stdout");
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments); });
}

}  // namespace evenkeel::cli
