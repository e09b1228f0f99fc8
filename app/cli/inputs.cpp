// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "app/cli/command.h"
#include "core/base/words.h"
#include "core/cluster/catalogue.h"
#include "core/plan/features.h"

namespace evenkeel::cli {
namespace {

template <class E>
Result<std::optional<E>> wordOption(const char* option, const std::string& word,
                                    std::span<const std::pair<std::string_view, E>> words) {
  if (word.empty()) return std::optional<E>{};
  std::string known;
  for (const auto& [name, value] : words) {
    if (name == word) return std::optional<E>{value};
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return invalidInput(option, fmt::format("\"{}\" is unknown", word), "expected one of: " + known);
}

Result<void> checkRange(const char* option, std::optional<std::int64_t> value, std::int64_t least, std::int64_t most) {
  if (!value || (*value >= least && *value <= most)) return {};
  return invalidInput(option, fmt::format("is {}", *value), fmt::format("expected a whole number from {} to {}", least, most));
}

Result<void> checkDevices(const Problem& problem) {
  const Precision precision = problem.training.precision;
  for (const DeviceType& type : problem.cluster.deviceTypes) {
    if (!type.has(precision)) {
      return invalidInput("--precision", fmt::format("{} does not exist on {}", name(precision), type.name),
                          "choose another precision or leave these devices out of the cluster");
    }
    if (auto obstacle = obstacleTo(problem.model, precision, type))
      return invalidInput("--model", fmt::format("{} {}", type.name, obstacle->what), obstacle->remedy);
  }
  return {};
}

/// Device types that a table of layers has times of, and nobody else has heard of: perhaps misspelt.
std::set<std::string> unknownTypes(const Problem& problem) {
  std::set<std::string> unknown;
  if (!problem.model.opaque) return unknown;
  const OpaqueLayers& layers = *problem.model.opaque;
  for (const OpaqueLayer* const layer : {&layers.first, &layers.inner, &layers.last}) {
    for (const auto& [type, time] : layer->times) {
      const auto isNamed = [&](const DeviceType& known) { return known.name.substr(0, known.name.find('@')) == type; };
      if (!std::ranges::any_of(problem.cluster.deviceTypes, isNamed) && !deviceTypeNamed(type)) unknown.insert(type);
    }
  }
  return unknown;
}

}  // namespace

void addProblemOptions(CLI::App& command, ProblemArguments& arguments) {
  command.add_option("--cluster", arguments.cluster, "Cluster file, or NODESxDEVICES:TYPE[@SPEED][,...]")->required();
  command.add_option("--model", arguments.model, "Model file, Hugging Face config.json, or a name of `models`")->required();
  command.add_option("--global-batch", arguments.globalBatch,
                     fmt::format("Samples an iteration (default {})", kDefaultGlobalBatch));
  command.add_option("--sequence-length", arguments.sequenceLength, "Tokens a sample (default: the model's context)");
  command.add_option("--precision", arguments.precision,
                     "fp32, bf16 or fp16 (default: bf16 where every device has it, else fp16; cpu fp32)");
  command.add_option("--zero", arguments.zero, "ZeRO stage 0, 1 or 2 (default 1; 0 on devices whose runtime lacks it)");
  command.add_option("--gradient-sync", arguments.sync, "block, tensor or device (default block)");
  command.add_option("--attention", arguments.attention, "unfused or fused attention kernel (default unfused)");
  addProfileOption(command, arguments.profile);
}

void addProfileOption(CLI::App& command, std::string& profile) {
  command.add_option("--profile", profile,
                     "Measured op times: a profile file, or a folder or table as `import` takes (default: analytic)");
}

Result<Problem> problemFrom(const ProblemArguments& arguments) {
  auto cluster = clusterFromArgument(arguments.cluster);
  if (!cluster) return std::move(cluster).error();
  auto model = modelFromArgument(arguments.model);
  if (!model) return std::move(model).error();

  TrainingChoice choice;
  choice.globalBatch = arguments.globalBatch;
  choice.sequenceLength = arguments.sequenceLength;
  if (auto checked = checkRange("--global-batch", arguments.globalBatch, 1, kMaxGlobalBatch); !checked) return checked.error();
  if (auto checked = checkRange("--sequence-length", arguments.sequenceLength, 1, kMaxSequence); !checked) return checked.error();
  if (auto checked = checkRange("--zero", arguments.zero, 0, 2); !checked) return checked.error();
  if (arguments.zero) choice.zeroStage = static_cast<int>(*arguments.zero);
  if (arguments.sequenceLength && model->position == Position::Learned && *arguments.sequenceLength > model->context) {
    return invalidInput("--sequence-length", fmt::format("{} is longer than the {} learned positions of {}",
                                                         *arguments.sequenceLength, model->context, model->name));
  }
  if (arguments.sequenceLength && model->opaque && *arguments.sequenceLength != model->context) {
    return invalidInput(
        "--sequence-length",
        fmt::format("is {}, but the layers of {} were measured at {}", *arguments.sequenceLength, model->name, model->context),
        "leave it out");
  }
  const auto precision = wordOption<Precision>("--precision", arguments.precision, precisionWords());
  if (!precision) return precision.error();
  choice.precision = *precision;
  const auto sync = wordOption<GradientSync>("--gradient-sync", arguments.sync, gradientSyncWords());
  if (!sync) return sync.error();
  choice.gradientSync = *sync;
  const auto attention = wordOption<AttentionKernel>("--attention", arguments.attention, attentionWords());
  if (!attention) return attention.error();
  choice.attention = *attention;

  Problem problem{*std::move(cluster), *std::move(model), {}};
  problem.training = resolveTraining(choice, problem.cluster, problem.model);
  if (auto checked = checkDevices(problem); !checked) return checked.error();
  return problem;
}

void printDefaults(const ProblemArguments& arguments, const Problem& problem) {
  for (const std::string& type : unknownTypes(problem))
    note("warning: {} has times of {}, which is neither in this cluster nor in the catalogue\n", problem.model.name, type);
  const Training& training = problem.training;
  std::string text;
  const auto add = [&](bool wasGiven, const std::string& what) {
    if (!wasGiven) text += (text.empty() ? "" : ", ") + what;
  };
  add(arguments.globalBatch.has_value(), fmt::format("global batch {}", training.globalBatch));
  add(arguments.sequenceLength.has_value(), fmt::format("sequence {}", training.sequenceLength));
  add(!arguments.precision.empty(), std::string(name(training.precision)));
  add(arguments.zero.has_value(), fmt::format("ZeRO-{}", training.zeroStage));
  add(!arguments.sync.empty(), fmt::format("{}-wise sync", name(training.gradientSync)));
  add(!arguments.attention.empty(), fmt::format("{} attention", name(training.attention)));
  if (!text.empty()) note("assumed: {}\n", text);
}

void addSearchOptions(CLI::App& command, SearchArguments& arguments) {
  command.add_option("--planner-option", arguments.options, "K=V, an option of the planner; may be given several times")
      ->take_all();
  command.add_option("--time-limit", arguments.timeLimit, "Seconds after which the best plan so far is taken");
  command.add_option("--gap", arguments.gap,
                     "End when the reported number is proven to be within this fraction of the optimum (default 0.04)");
  command.add_option("--effort", arguments.effort, "End after this many evaluated plans");
  command.add_option("--seed", arguments.seed, "Seed of everything random (default 1)");
  command.add_option("--threads", arguments.threads, "Search threads (default: all cores)");
}

Result<Budget> budgetFrom(const SearchArguments& arguments) {
  if (auto checked = checkRange("--effort", arguments.effort, 1, std::int64_t{1} << 60); !checked) return checked.error();
  if (auto checked = checkRange("--threads", arguments.threads, 0, 4096); !checked) return checked.error();
  if (auto checked = checkRange("--seed", arguments.seed, 0, std::numeric_limits<std::int64_t>::max()); !checked)
    return checked.error();
  if (arguments.timeLimit && !(*arguments.timeLimit > 0 && *arguments.timeLimit < 1e9)) {
    return invalidInput("--time-limit", fmt::format("is {}", *arguments.timeLimit), "expected a number of seconds above 0");
  }
  if (arguments.gap && !(*arguments.gap >= 0 && *arguments.gap <= 1)) {
    return invalidInput("--gap", fmt::format("is {}", *arguments.gap), "expected a fraction from 0 to 1");
  }
  Budget budget;
  if (arguments.timeLimit) budget.timeLimit = Seconds{*arguments.timeLimit};
  budget.gap = arguments.gap;
  budget.effort = arguments.effort;
  budget.seed = static_cast<std::uint64_t>(arguments.seed);
  budget.threads = static_cast<int>(arguments.threads);
  return budget;
}

Result<PlannerOptions> plannerOptionsFrom(const SearchArguments& arguments) {
  PlannerOptions options;
  for (const std::string& text : arguments.options) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return invalidInput("--planner-option", fmt::format("\"{}\" is no option", text), "expected K=V");
    if (!options.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
      return invalidInput("--planner-option", fmt::format("\"{}\" is given twice", text.substr(0, equals)));
    }
  }
  return options;
}

}  // namespace evenkeel::cli
