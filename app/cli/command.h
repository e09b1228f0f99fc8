// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"

namespace evenkeel::cli {

/// Exit codes of all commands (architecture.md, Command line).
enum ExitCode : int {
  kOk = 0,
  kFailed = 1,      // what was given was right and failed
  kUsage = 2,       // anything wrong with what was given
  kInfeasible = 3,  // right, and has no solution
};

/// Where a command leaves its result: main returns it. Set by the command that ran.
struct Outcome {
  int exitCode = kOk;
  std::vector<std::string> words;  // the command line, to be shown in what it makes
};

/// Says something to people on stderr. Where nobody listens any more (a closed pipe, a full disk), the work goes on.
template <class... Arguments>
void note(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// Prints "error: ..." with its way out on stderr and returns the exit code of its kind.
[[nodiscard]] int report(const Error& error);

/// Prints one JSON document on stdout and nothing else.
void printJson(const Json& json);

/// Whether a file that an option names can be written, asked before the work whose result it is to hold; tried, because permissions do not tell
/// (root may do all, but not on a disk that is read-only). What cannot be is InvalidInput, a full disk a failure. An empty path is fine.
[[nodiscard]] Result<void> checkOutput(const std::string& option, const std::string& path);

/// The same for a folder that files are written into, and that is made if it is not there; nothing is made here.
[[nodiscard]] Result<void> checkOutputFolder(const std::string& option, const std::string& path);

/// The same for all files that a command is to write, and whether they differ: the second would replace the first.
[[nodiscard]] Result<void> checkOutputs(const std::vector<std::pair<std::string, std::string>>& optionsAndPaths);

/// The worker beside this program.
[[nodiscard]] std::filesystem::path ownWorker();

// One function a command, each in a file of its own: adds its subcommand with options and the callback that runs it.
void addDevices(CLI::App& app, Outcome& outcome);
void addModels(CLI::App& app, Outcome& outcome);
void addPlan(CLI::App& app, Outcome& outcome);
void addCompare(CLI::App& app, Outcome& outcome);
void addReproduce(CLI::App& app, Outcome& outcome);
void addCheck(CLI::App& app, Outcome& outcome);
void addEvaluate(CLI::App& app, Outcome& outcome);
void addSimulate(CLI::App& app, Outcome& outcome);
void addImport(CLI::App& app, Outcome& outcome);
void addExport(CLI::App& app, Outcome& outcome);
void addDiscover(CLI::App& app, Outcome& outcome);
void addProfile(CLI::App& app, Outcome& outcome);
void addLaunch(CLI::App& app, Outcome& outcome);
void addRuns(CLI::App& app, Outcome& outcome);
void addStatus(CLI::App& app, Outcome& outcome);
void addAttach(CLI::App& app, Outcome& outcome);
void addStop(CLI::App& app, Outcome& outcome);
void addLogs(CLI::App& app, Outcome& outcome);
void addTokenize(CLI::App& app, Outcome& outcome);
void addWeights(CLI::App& app, Outcome& outcome);
void addTrace(CLI::App& app, Outcome& outcome);

}  // namespace evenkeel::cli
