// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/cli/command.h"
#include "app/cli/follow.h"
#include "app/cli/inputs.h"
#include "core/profile/profile_table.h"
#include "launcher/ssh/local_host.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  ProblemArguments problem;
  std::string out;
  std::vector<std::int64_t> samples;
  double secondsPerPoint = 0.5;
  bool asJson = false;
};

/// Up to here, in powers of two, unless the person says which.
constexpr std::int64_t kMostSamples = 8;

struct Here {
  std::string type;  // without its speed
  double speed = 1;  // of the slowest device
};

/// The one device type of the cluster that this machine has.
Result<Here> typeHere(const Cluster& cluster) {
  for (const Node& node : cluster.nodes) {
    if (!node.ssh.host.empty()) return invalidInput(node.name, "is reached over SSH, and profiles of other machines cannot be measured yet", "run `evenkeel-cli profile` there");
  }
  Here here;
  for (const DeviceType& type : cluster.deviceTypes) {
    if (!type.runsHere) continue;
    here.type = type.name.substr(0, type.name.find('@'));
    here.speed = std::min(here.speed, type.speed);
  }
  if (!here.type.empty()) return here;
  return invalidInput("the cluster", "has no device that runs here", "measure on devices such as cpu; see `evenkeel-cli devices`");
}

std::vector<std::int64_t> samplesFrom(const Arguments& arguments, const Training& training) {
  if (!arguments.samples.empty()) return arguments.samples;
  std::vector<std::int64_t> samples;
  for (std::int64_t count = 1; count <= std::min(kMostSamples, training.globalBatch); count *= 2) samples.push_back(count);
  return samples;
}

Result<ProfileTable> measure(const Json& request, std::stop_token stop) {
  LocalHost host("this machine");
  std::string rest = request.dump();
  const auto feed = [&rest](std::size_t most) {
    const std::string piece = rest.substr(0, most);
    rest.erase(0, piece.size());
    return piece;
  };
  const auto output = evenkeel::run(host, {.argv = {ownWorker().string(), "--profile"}, .input = feed}, std::move(stop));
  if (!output) return output.error();
  if (!output->ending.wasGood()) return failed("evenkeel-worker --profile", fmt::format("{}: {}", output->ending.text(), output->err));
  const auto json = parseJson(output->out, "evenkeel-worker --profile");
  if (!json) return json.error();
  return parseProfile(*json, "evenkeel-worker --profile");
}

int run(const Arguments& arguments) {
  if (auto writable = checkOutputs({{"--out", arguments.out}}); !writable) return report(writable.error());
  const auto problem = problemFrom(arguments.problem);
  if (!problem) return report(problem.error());
  if (problem->model.opaque)
    return report(invalidInput("--model", problem->model.name + " is a table of layers, which has no ops to be measured",
                               "measure its layers yourself and write them into times_ms"));
  printDefaults(arguments.problem, *problem);
  const auto here = typeHere(problem->cluster);
  if (!here) return report(here.error());
  const Json request = {{"model", toJson(problem->model)},
                        {"training", toJson(problem->training)},
                        {"samples", samplesFrom(arguments, problem->training)},
                        {"device_type", here->type},
                        {"seconds_per_point", arguments.secondsPerPoint},
                        {"speed", here->speed}};
  note("measuring the ops of {} on {}{}\n", problem->model.name, here->type,
       here->speed < 1 ? fmt::format(", resting between passes as at speed {:g}", here->speed) : "");
  FollowInterrupt interrupt;
  const auto table = measure(request, interrupt.token());
  if (!table) return report(table.error());
  const Json json = toJson(*table);
  if (!arguments.out.empty()) {
    if (auto written = writeFileAtomically(arguments.out, prettyText(json)); !written) return report(written.error());
    note("written: {}; next: give plan, compare or evaluate --profile {}\n", arguments.out, arguments.out);
  }
  if (arguments.asJson || arguments.out.empty()) printJson(json);
  return kOk;
}

}  // namespace

void addProfile(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("profile", "Measure how long the ops of a model take on this machine, for --profile of the other commands");
  auto arguments = std::make_shared<Arguments>();
  addProblemOptions(*command, arguments->problem);
  command->add_option("--out", arguments->out, "Write the profile to this file");
  command->add_option("--samples", arguments->samples, "Micro-batches to measure (default: 1 2 4 8)")->check(CLI::Range(1, 65'536));
  command->add_option("--seconds-per-point", arguments->secondsPerPoint, "CPU time for one kind of unit at one micro-batch (default 0.5)")->check(CLI::NonNegativeNumber);
  command->add_flag("--json", arguments->asJson, "The profile on stdout, too");
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments); });
}

}  // namespace evenkeel::cli
