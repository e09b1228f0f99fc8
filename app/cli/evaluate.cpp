// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "app/cli/command.h"
#include "app/cli/describe.h"
#include "app/cli/evaluation.h"
#include "app/cli/inputs.h"
#include "app/cli/table.h"
#include "core/cost/explain.h"
#include "core/profile/table_profile.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  std::string file, profile;
  bool explain = false, asJson = false;
};

/// The plans of a .json file (one) or a .jsonl file (one a line; errors name the line).
Result<std::vector<Plan>> plansOf(const std::string& file) {
  std::vector<Plan> plans;
  if (!file.ends_with(".jsonl")) {
    auto plan = loadPlan(file);
    if (!plan) return std::move(plan).error();
    plans.push_back(*std::move(plan));
    return plans;
  }
  auto text = readFile(file);
  if (!text) return std::move(text).error();
  std::string_view rest = *text;
  for (int line = 1; !rest.empty(); ++line) {
    const std::size_t end = rest.find('\n');
    const std::string_view document = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (document.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string source = fmt::format("{}:{}", file, line);
    auto json = parseJson(document, source);
    if (!json) return std::move(json).error();
    auto plan = parsePlan(*json, source);
    if (!plan) return std::move(plan).error();
    plans.push_back(*std::move(plan));
  }
  if (plans.empty()) return invalidInput(file, "holds no plan", "expected one plan a line");
  return plans;
}

void print(const Evaluation& evaluation) {
  if (!evaluation.valid()) fmt::print("invalid:\n{}", describe(evaluation.violations));
  if (!evaluation.plan.predicted) return;
  const PlanPrediction& predicted = *evaluation.plan.predicted;
  const bool isRagged = std::ranges::any_of(evaluation.plan.pipelines, [](const Pipeline& p) { return p.localBatch % p.microBatch != 0; });
  fmt::print("{}\n{}", headline(evaluation.plan), alignedTable({{"  part", "time"},
    {"  slowest pipeline (simulated 1F1B)", shortTime(predicted.pipeline.value)},
    {"  gradient sync", shortTime(predicted.sync.value)},
    {"  optimizer", shortTime(predicted.optimizer.value)},
    {"  iteration", shortTime(predicted.iteration.value)},
    {isRagged ? "  iteration by the closed form, as if the last micro-batches were whole" : "  iteration by the closed form", shortTime(evaluation.closedForm.value)}}));
  fmt::print("  bubbles: {:.1f} % of the used devices' time\n\n{}", 100 * evaluation.bubbleFraction, describePlan(evaluation.plan));
}

Json jsonOf(const std::vector<ExplainedTerm>& terms) {
  Json all = Json::array();
  for (const ExplainedTerm& term : terms)
    all.push_back({{"level", term.level}, {"what", term.what}, {"ms", rounded(milliseconds(term.time))}, {"because", term.because}});
  return all;
}

void print(const std::vector<ExplainedTerm>& terms, const std::string& profile) {
  std::vector<std::vector<std::string>> rows = {{"what", "time", "because"}};
  for (const ExplainedTerm& term : terms) {
    rows.push_back({std::string(2 * static_cast<std::size_t>(term.level), ' ') + term.what, shortTime(term.time.value), term.because});
  }
  fmt::print("\nop times: {}\n{}", profile, alignedTable(rows));
}

int run(const Arguments& arguments) {
  const auto plans = plansOf(arguments.file);
  if (!plans) return report(plans.error());
  Json all = Json::array();
  for (const Plan& plan : *plans) {
    const auto profile = profileFromArgument(arguments.profile, plan.cluster, plan.model, plan.training);
    if (!profile) return report(profile.error());
    const Evaluation evaluation = evaluate(plan, **profile, false);
    std::vector<ExplainedTerm> terms;
    if (arguments.explain && evaluation.plan.predicted)
      terms = explain(CostModel(plan.cluster, plan.model, plan.training, **profile), evaluation);
    if (arguments.asJson) {
      all.push_back(toJson(evaluation));
      if (arguments.explain) all.back()["explanation"] = jsonOf(terms);
    } else {
      print(evaluation);
      if (!terms.empty()) print(terms, (*profile)->description());
    }
  }
  if (arguments.asJson) printJson({{"plans", all}});
  return kOk;
}

}  // namespace

void addEvaluate(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("evaluate", "The cost model on given plans: time, memory, bubbles");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("plans", arguments->file, "A plan file, or a .jsonl file with one plan a line")->required();
  addProfileOption(*command, arguments->profile);
  command->add_flag("--explain", arguments->explain, "The sum behind each number: which op, which link, which formula");
  command->add_flag("--json", arguments->asJson, "One JSON document on stdout");
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments); });
}

}  // namespace evenkeel::cli
