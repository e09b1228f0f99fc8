// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include "app/cli/command.h"
#include "app/cli/describe.h"
#include "app/cli/inputs.h"
#include "app/cli/megatron.h"
#include "core/cost/evaluate.h"
#include "core/profile/table_profile.h"
#include "core/report/compare_html.h"
#include "core/trace/timeline.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  std::string plan, to, out, profile;
};

std::string csvOf(const Plan& plan) {
  std::string text = "pipeline,stage,device_type,devices,tp,dp,first_unit,last_unit,local_batch,micro_batch,forward_ms,backward_ms,send_ms,memory_bytes,capacity_bytes\n";
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const Pipeline& pipeline = plan.pipelines[p];
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      const Stage& stage = pipeline.stages[s];
      std::string devices;
      for (const DeviceId device : stage.devices) devices += (devices.empty() ? "" : " ") + plan.cluster.nameOf(device);
      text += fmt::format("{},{},{},{},{},{},{},{},{},{}", p, s, plan.cluster.typeOf(stage.devices.front()).name, devices, stage.tp, stage.dp, stage.units.first,
                          stage.units.last, pipeline.localBatch, pipeline.microBatch);
      if (stage.predicted) {
        text += fmt::format(",{},{},{},{},{}", rounded(milliseconds(stage.predicted->forward)), rounded(milliseconds(stage.predicted->backward)),
                            rounded(milliseconds(stage.predicted->send)), stage.predicted->memory.total().value, stage.predicted->memory.capacity.value);
      } else {
        text += ",,,,,";
      }
      text += "\n";
    }
  }
  return text;
}

Result<std::string> exported(const Arguments& arguments) {
  const auto plan = loadPlan(arguments.plan);
  if (!plan) return plan.error();
  const auto profile = profileFromArgument(arguments.profile, plan->cluster, plan->model, plan->training);
  if (!profile) return profile.error();
  const Evaluation evaluation = evaluate(*plan, **profile, true);
  if (!evaluation.valid()) return invalidInput(arguments.plan, "is not valid", "`evenkeel-cli check " + arguments.plan + "` says why");
  if (arguments.to == "csv") return csvOf(evaluation.plan);
  if (arguments.to == "trace") return chromeTrace(evaluation.timeline).dump();
  if (arguments.to == "html") {
    report::CompareReport page{{plan->cluster, plan->model, plan->training}, (*profile)->description(), report::shellText({"evenkeel-cli", "export", arguments.plan, "--to", "html"}), {}};
    const std::string planner = plan->search.is_object() ? plan->search.value("planner", "by hand") : "by hand";
    page.planners.push_back({.planner = planner, .summary = {}, .deviations = {}, .evaluation = evaluation, .error = {}, .search = {}});
    return report::compareHtml(page);
  }
  const auto words = megatronArguments(*plan);
  if (!words) return words.error();
  return report::shellText(*words) + "\n";
}

int run(const Arguments& arguments) {
  if (auto checked = checkOutput("--out", arguments.out); !checked) return report(checked.error());
  const auto text = exported(arguments);
  if (!text) return report(text.error());
  if (arguments.out.empty()) {
    fmt::print("{}", *text);
    return kOk;
  }
  if (auto written = writeFileAtomically(arguments.out, *text); !written) return report(written.error());
  return kOk;
}

}  // namespace

void addExport(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("export", "A plan for others: Megatron-LM's arguments, a Perfetto trace, a table, a page with pictures");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("plan", arguments->plan, "Plan file")->required();
  command->add_option("--to", arguments->to, "megatron, trace, csv or html")->required()->check(CLI::IsMember({"megatron", "trace", "csv", "html"}));
  command->add_option("--out", arguments->out, "Write to this file (default: stdout)");
  addProfileOption(*command, arguments->profile);
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments); });
}

}  // namespace evenkeel::cli
