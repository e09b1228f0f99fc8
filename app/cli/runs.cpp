// SPDX-License-Identifier: GPL-3.0-or-later
// The commands on runs that exist: runs, status, attach, stop, logs.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "app/cli/command.h"
#include "app/cli/follow.h"
#include "app/cli/login_prompt.h"
#include "app/cli/table.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  std::string run;
  std::optional<int> rank;
  std::string board;
  bool asJson = false;
};

/// Opens the history and runs `body` on it; reports what goes wrong.
int withLauncher(const std::function<int(Launcher&)>& body) {
  auto launcher = openLauncher();
  return launcher ? body(*launcher) : report(launcher.error());
}

/// The same for the run that the arguments name, by its whole id from then on.
int withRun(Arguments& arguments, const std::function<int(Launcher&)>& body) {
  return withLauncher([&](Launcher& launcher) {
    auto named = launcher.runNamed(arguments.run);
    if (!named) return report(named.error());
    arguments.run = *std::move(named);
    return body(launcher);
  });
}

int listRuns(Launcher& launcher, bool asJson) {
  const auto runs = launcher.runs();
  if (!runs) return report(runs.error());
  if (asJson) {
    printJson(toJson(*runs));
    return kOk;
  }
  if (runs->empty()) {
    fmt::print("No runs yet. Start one: evenkeel-cli launch plan.json --local --data FILE --steps N\n");
    return kOk;
  }
  std::vector<std::vector<std::string>> rows = {{"run", "state", "started (UTC)", "steps"}};
  for (const RunRow& row : *runs) {
    rows.push_back({row.run, row.isQueued ? "queued" : std::string(name(row.state)), fmt::format("{:%F %T}", fmt::gmtime(static_cast<std::time_t>(row.started))), fmt::format("{}{}", row.steps, row.isRehearsal ? " rehearsed" : "")});
  }
  fmt::print("{}", alignedTable(rows));
  return kOk;
}

int showStatus(Launcher& launcher, const Arguments& arguments) {
  const auto status = launcher.statusOf(arguments.run);
  if (!status) return report(status.error());
  arguments.asJson ? printJson(toJson(*status)) : fmt::print("{}", describe(*status));
  return kOk;
}

int attach(Launcher& launcher, const Arguments& arguments) {
  FollowInterrupt interrupt;
  const auto request = launcher.requestOf(arguments.run);  // what is wrong with it, followToEnd says
  JobProgress progress(request ? request->run.steps : 0, request && request->run.rehearsal);
  if (!arguments.board.empty()) {
    if (auto made = progress.alsoInto(arguments.board); !made) return report(made.error());
  }
  return followToEnd(launcher, arguments.run, progress, interrupt, arguments.asJson);
}

int stop(Launcher& launcher, const Arguments& arguments) {
  const auto rows = launcher.runs();
  const auto row = rows ? std::ranges::find(*rows, arguments.run, &RunRow::run) : decltype(rows->begin()){};
  const bool wasOver = rows && row != rows->end() && hasEnded(row->state);
  const auto stopped = launcher.stopJob(arguments.run);  // of one that is over, too: something of it may be left
  if (!stopped) return report(stopped.error());
  for (const StopReport::Node& node : stopped->nodes) {
    std::string left;
    for (const int pid : node.left) left += fmt::format(" {}", pid);
    if (node.stopped) fmt::print("{}: {}nothing is left\n", node.node, wasOver ? fmt::format("the run was {} already, ", name(row->state)) : "stopped, ");
    else fmt::print("{}: {}{}\n", node.node, node.problem, left.empty() ? "" : "; processes left:" + left);
  }
  return stopped->complete() ? kOk : kFailed;
}

int logs(Launcher& launcher, const Arguments& arguments) {
  const auto size = launcher.worldSizeOf(arguments.run);
  if (!size) return report(size.error());
  if (arguments.rank && (*arguments.rank < 0 || *arguments.rank >= *size)) {
    return report(invalidInput("--rank", fmt::format("is {}", *arguments.rank), fmt::format("run {} has ranks 0 to {}", arguments.run, *size - 1)));
  }
  const int first = arguments.rank.value_or(0), last = arguments.rank.value_or(*size - 1);
  for (int rank = first; rank <= last; ++rank) {
    const auto text = launcher.logOf(arguments.run, rank);
    if (!text) return report(text.error());
    if (!arguments.rank) fmt::print("--- rank {}\n", rank);
    fmt::print("{}", *text);
    if (text->empty()) note("rank {} has written nothing\n", rank);
  }
  return kOk;
}

CLI::App* addRunCommand(CLI::App& app, const std::string& name, const std::string& description, Arguments& arguments) {
  CLI::App* command = app.add_subcommand(name, description);
  command->add_option("run", arguments.run, "Run id, as `runs` lists them, or its beginning")->required();
  return command;
}

}  // namespace

void addRuns(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("runs", "All runs, newest first");
  auto asJson = std::make_shared<bool>(false);
  command->add_flag("--json", *asJson, "One JSON document on stdout");
  command->callback([asJson, &outcome] { outcome.exitCode = withLauncher([&](Launcher& launcher) { return listRuns(launcher, *asJson); }); });
}

void addStatus(CLI::App& app, Outcome& outcome) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = addRunCommand(app, "status", "How a run stands", *arguments);
  command->add_flag("--json", arguments->asJson, "One JSON document on stdout");
  command->callback([arguments, &outcome] { outcome.exitCode = withRun(*arguments, [&](Launcher& launcher) { return showStatus(launcher, *arguments); }); });
}

void addAttach(CLI::App& app, Outcome& outcome) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = addRunCommand(app, "attach", "Follow a run to its end; Ctrl-C leaves it running", *arguments);
  command->add_flag("--json", arguments->asJson, "One JSON document on stdout at the end");
  addBoardOption(*command, arguments->board);
  command->callback([arguments, &outcome] { outcome.exitCode = withRun(*arguments, [&](Launcher& launcher) { return attach(launcher, *arguments); }); });
}

void addStop(CLI::App& app, Outcome& outcome) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = addRunCommand(app, "stop", "End a run on all its nodes, and say what is left", *arguments);
  command->callback([arguments, &outcome] { outcome.exitCode = withRun(*arguments, [&](Launcher& launcher) { return stop(launcher, *arguments); }); });
}

void addLogs(CLI::App& app, Outcome& outcome) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = addRunCommand(app, "logs", "What the ranks of a run wrote", *arguments);
  command->add_option("--rank", arguments->rank, "Only this rank");
  command->callback([arguments, &outcome] { outcome.exitCode = withRun(*arguments, [&](Launcher& launcher) { return logs(launcher, *arguments); }); });
}

}  // namespace evenkeel::cli
