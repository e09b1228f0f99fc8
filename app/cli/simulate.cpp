// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include "app/cli/command.h"
#include "app/cli/describe.h"
#include "app/cli/evaluation.h"
#include "app/cli/inputs.h"
#include "app/cli/table.h"
#include "core/profile/table_profile.h"
#include "core/report/pipeline_groups.h"
#include "core/trace/timeline.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  std::string plan, trace, profile;
  bool asJson = false;
};

using Rows = std::vector<std::vector<std::string>>;

/// What the stages of a pipeline do, a row each.
Rows figuresOf(const std::vector<StageActivity>& stages) {
  Rows rows;
  for (const StageActivity& activity : stages)
    rows.push_back({shortTime(activity.busy.value), shortTime(activity.waiting.value), shortTime(activity.sending.value),
                    fmt::format("{:.0f}", 100 * activity.busy.value / (activity.busy + activity.waiting).value)});
  return rows;
}

/// Like pipelines are shown once, as `plan` shows them, as far as they do the same too: their links may differ.
void print(const Evaluation& evaluation) {
  const Plan& plan = evaluation.plan;
  Rows rows = {{"pipeline", "stage", "devices", "busy", "waiting", "sending", "busy %"}};
  for (const report::PipelineGroup& group : report::pipelineGroups(plan)) {
    const std::size_t end = group.first + group.count;
    for (std::size_t first = group.first, next = first; first < end; first = next) {
      const Rows figures = figuresOf(evaluation.activity[first]);
      while (next < end && figuresOf(evaluation.activity[next]) == figures) ++next;
      for (std::size_t s = 0; s < figures.size(); ++s) {
        rows.push_back({next - first > 1 ? fmt::format("{} to {}, each", first, next - 1) : fmt::format("{}", first), fmt::format("{}", s),
                        deviceList(plan.cluster, plan.pipelines[first].stages[s].devices)});
        rows.back().insert(rows.back().end(), figures[s].begin(), figures[s].end());
      }
    }
  }
  fmt::print("{}\n\n{}", headline(plan), alignedTable(rows));
}

int run(const Arguments& arguments) {
  if (auto checked = checkOutput("--trace", arguments.trace); !checked) return report(checked.error());
  const auto plan = loadPlan(arguments.plan);
  if (!plan) return report(plan.error());
  const auto profile = profileFromArgument(arguments.profile, plan->cluster, plan->model, plan->training);
  if (!profile) return report(profile.error());
  const Evaluation evaluation = evaluate(*plan, **profile, true);
  if (!evaluation.plan.predicted) {  // the shape is wrong: there is nothing to simulate
    return report(invalidInput(arguments.plan, "cannot be simulated", "it breaks these rules:\n" + describe(evaluation.violations)));
  }
  if (!evaluation.valid()) note("note: the plan is not valid:\n{}", describe(evaluation.violations));
  if (!arguments.trace.empty()) {
    if (auto written = writeFileAtomically(arguments.trace, chromeTrace(evaluation.timeline).dump()); !written) return report(written.error());
  }
  if (arguments.asJson) {
    Json json = toJson(evaluation);
    json["stages"] = stagesJson(evaluation);
    printJson(json);
  } else {
    print(evaluation);
    if (!arguments.trace.empty()) fmt::print("\nwritten: {}; open it at https://ui.perfetto.dev or chrome://tracing\n", arguments.trace);
  }
  return kOk;
}

}  // namespace

void addSimulate(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("simulate", "Event-driven 1F1B of a plan: who is busy, who waits");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("plan", arguments->plan, "Plan file")->required();
  command->add_option("--trace", arguments->trace, "Write the timeline as a Chrome/Perfetto trace");
  addProfileOption(*command, arguments->profile);
  command->add_flag("--json", arguments->asJson, "One JSON document on stdout");
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments); });
}

}  // namespace evenkeel::cli
