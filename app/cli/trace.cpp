// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "app/cli/command.h"
#include "app/cli/describe.h"
#include "app/cli/inputs.h"
#include "app/cli/login_prompt.h"
#include "app/cli/table.h"
#include "core/cost/evaluate.h"
#include "core/profile/table_profile.h"
#include "core/report/compare_html.h"
#include "core/trace/measured.h"
#include "launcher/job/job.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  std::string run, trace, picture, profile;
  std::optional<std::int64_t> step;
  bool asJson = false;
};

/// One step of a run, as it was predicted and as it was.
struct Step {
  std::string run;  // its id
  std::int64_t step = 0;
  Timeline predicted, measured;
  std::string profile;
};

Result<Step> stepOf(const Arguments& arguments) {
  auto launcher = openLauncher();
  if (!launcher) return std::move(launcher).error();
  const auto run = launcher->runNamed(arguments.run);
  if (!run) return run.error();
  const auto request = launcher->requestOf(*run);
  if (!request) return request.error();
  const auto records = launcher->recordsOf(*run, std::string(kTimelineEvent));
  if (!records) return records.error();
  const auto steps = tracedSteps(*records);
  Step step{.run = *run, .step = arguments.step.value_or(steps.empty() ? 0 : steps.back()), .predicted = {}, .measured = {}, .profile = {}};
  if (steps.empty()) return invalidInput("run " + *run, "has no timeline", "launch it with --trace-step N");
  auto measured = measuredTimeline(request->plan, step.step, *records);
  if (!measured) return std::move(measured).error();
  step.measured = *std::move(measured);
  const auto profile = profileFromArgument(arguments.profile, request->plan.cluster, request->plan.model, request->plan.training);
  if (!profile) return profile.error();
  step.profile = (*profile)->description();
  step.predicted = evaluate(request->plan, **profile, true).timeline;
  if (!request->run.rehearsal) return step;
  for (Span& span : step.predicted.spans) {  // slept at another tempo
    span.start = request->run.rehearsal->timeScale * span.start;
    span.end = request->run.rehearsal->timeScale * span.end;
  }
  return step;
}

Json toJson(const Lane& lane, const LaneTimes& times) {
  return {{"name", lane.name},
          {"pipeline", lane.pipeline},
          {"stage", lane.stage},
          {"forward_ms", milliseconds(times.forward)},
          {"backward_ms", milliseconds(times.backward)},
          {"waiting_ms", milliseconds(times.wait)},
          {"sync_ms", milliseconds(times.sync)},
          {"optimizer_ms", milliseconds(times.optimizer)},
          {"end_ms", milliseconds(times.end)}};
}

Json lanesJson(const Timeline& timeline) {
  Json lanes = Json::array();
  const auto times = laneTimes(timeline);
  for (std::size_t l = 0; l < times.size(); ++l) lanes.push_back(toJson(timeline.lanes[l], times[l]));
  return lanes;
}

/// Each stage as it was predicted, and its ranks below it.
void print(const Step& step) {
  std::vector<std::vector<std::string>> rows = {{"stage", "", "forward", "backward", "waiting", "sync", "optimizer", "end"}};
  const auto row = [&](const std::string& stage, const std::string& who, const LaneTimes& times) {
    rows.push_back({stage, who, shortTime(times.forward.value), shortTime(times.backward.value), shortTime(times.wait.value), shortTime(times.sync.value),
                    shortTime(times.optimizer.value), shortTime(times.end.value)});
  };
  const auto predicted = laneTimes(step.predicted), measured = laneTimes(step.measured);
  for (std::size_t p = 0; p < predicted.size(); ++p) {
    const Lane& stage = step.predicted.lanes[p];
    row(stage.name, "predicted", predicted[p]);
    for (std::size_t m = 0; m < measured.size(); ++m) {
      const Lane& lane = step.measured.lanes[m];
      if (lane.pipeline == stage.pipeline && lane.stage == stage.stage) row("", lane.name, measured[m]);
    }
  }
  fmt::print("step {}, predicted from: {}\n\n{}", step.step, step.profile, alignedTable(rows));
}

int run(const Arguments& arguments) {
  if (auto checked = checkOutputs({{"--out", arguments.trace}, {"--picture", arguments.picture}}); !checked) return report(checked.error());
  const auto step = stepOf(arguments);
  if (!step) return report(step.error());
  if (!arguments.trace.empty()) {
    if (auto written = writeFileAtomically(arguments.trace, chromeTrace(step->predicted, step->measured).dump()); !written) return report(written.error());
  }
  if (!arguments.picture.empty()) {
    const std::string page = report::stepHtml(step->run, step->step, step->predicted, step->measured, step->profile);
    if (auto written = writeFileAtomically(arguments.picture, page); !written) return report(written.error());
  }
  if (arguments.asJson) {
    printJson({{"run", step->run}, {"step", step->step}, {"predicted", lanesJson(step->predicted)}, {"measured", lanesJson(step->measured)}});
    return kOk;
  }
  print(*step);
  if (!arguments.trace.empty()) fmt::print("\nwritten: {}; open it at https://ui.perfetto.dev or chrome://tracing\n", arguments.trace);
  if (!arguments.picture.empty()) fmt::print("\nwritten: {}\n", arguments.picture);
  return kOk;
}

}  // namespace

void addTrace(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("trace", "One step of a run that was launched with --trace-step: who did what when, beside the prediction");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("run", arguments->run, "Run id, as `runs` lists them, or its beginning")->required();
  command->add_option("--step", arguments->step, "Which step (default: the last one that was traced)");
  command->add_option("--out", arguments->trace, "Write both timelines as a Chrome/Perfetto trace");
  command->add_option("--picture", arguments->picture, "Write a page with both timelines, predicted above measured");
  addProfileOption(*command, arguments->profile);
  command->add_flag("--json", arguments->asJson, "One JSON document on stdout: what each stage and rank spent its time on");
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments); });
}

}  // namespace evenkeel::cli
