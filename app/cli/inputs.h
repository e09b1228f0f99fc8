// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/search/search.h"

namespace evenkeel::cli {

/// The options that say what is planned; the same for every command that plans.
struct ProblemArguments {
  std::string cluster, model, precision, sync, attention, profile;
  std::optional<std::int64_t> globalBatch, sequenceLength, zero;
};
void addProblemOptions(CLI::App& command, ProblemArguments& arguments);

/// The profile that `--profile` names (the analytic one without it) for a model and a training.
void addProfileOption(CLI::App& command, std::string& profile);

/// The problem with all defaults resolved, or what is wrong with the arguments and where.
[[nodiscard]] Result<Problem> problemFrom(const ProblemArguments& arguments);

/// The options that say how long and how a planner searches.
struct SearchArguments {
  std::optional<double> timeLimit, gap;
  std::optional<std::int64_t> effort;
  std::int64_t seed = 1, threads = 0;
  std::vector<std::string> options;  // K=V
};
void addSearchOptions(CLI::App& command, SearchArguments& arguments);
[[nodiscard]] Result<Budget> budgetFrom(const SearchArguments& arguments);
[[nodiscard]] Result<PlannerOptions> plannerOptionsFrom(const SearchArguments& arguments);

/// Says on stderr what was assumed where nothing was said.
void printDefaults(const ProblemArguments& arguments, const Problem& problem);

}  // namespace evenkeel::cli
