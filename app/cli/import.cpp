// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "app/cli/command.h"
#include "app/cli/import_hosts.h"
#include "app/cli/inputs.h"
#include "app/cli/table.h"
#include "core/model/model.h"
#include "core/plan/problem.h"
#include "core/profile/importers.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  std::string kind, path, out, model, precision = "fp32", sizes, size, device;
  std::int64_t sequenceLength = 0;
  int count = 1;
  bool asJson = false;
};

Result<ProfileTable> importAs(const Arguments& arguments, const Model& model, const Training& training) {
  if (arguments.kind == "metis") return importMetis(arguments.path, model, training);
  if (arguments.kind == "aceso")
    return importAceso({arguments.path, arguments.size, arguments.device, arguments.precision}, model, training);
  if (arguments.size.empty()) return importProfile(arguments.path, model, training);  // Sailor's folders name model and card
  return importSailor({arguments.path, arguments.sizes, arguments.size, arguments.device}, model, training);
}

int importModel(const Arguments& arguments) {
  const auto model = loadModel(arguments.path);
  if (!model) return report(model.error());
  if (!arguments.out.empty()) {
    if (auto written = writeFileAtomically(arguments.out, prettyText(toJson(*model))); !written) return report(written.error());
  }
  if (arguments.asJson || arguments.out.empty()) printJson(toJson(*model));
  else
    fmt::print("{}: {} parameters, {} layers\nwritten: {}\n", model->name, parameterCount(*model), model->layers, arguments.out);
  return kOk;
}

int importHosts(const Arguments& arguments) {
  const auto cluster = clusterFromHosts({arguments.kind, arguments.path, arguments.device, arguments.count});
  if (!cluster) return report(cluster.error());
  if (!arguments.out.empty()) {
    if (auto written = writeFileAtomically(arguments.out, prettyText(toJson(*cluster))); !written) return report(written.error());
  }
  if (arguments.asJson || arguments.out.empty()) printJson(toJson(*cluster));
  else fmt::print("{} nodes, {} devices\nwritten: {}; next: evenkeel-cli plan --cluster {} --model NAME\n", cluster->nodes.size(), cluster->deviceCount(), arguments.out, arguments.out);
  return kOk;
}

int run(const Arguments& arguments) {
  if (auto checked = checkOutput("--out", arguments.out); !checked) return report(checked.error());
  if (arguments.kind == "hf-config") return importModel(arguments);
  if (isHostList(arguments.kind)) return importHosts(arguments);
  if (arguments.model.empty()) return report(invalidInput("--model", "is missing", "name the model that was profiled"));
  const auto model = modelFromArgument(arguments.model);
  if (!model) return report(model.error());
  Training training;
  training.sequenceLength = arguments.sequenceLength > 0 ? arguments.sequenceLength : model->context;
  training.globalBatch = 1;
  std::string known;
  bool isKnown = false;
  for (const auto& [word, precision] : precisionWords()) {
    if (word == arguments.precision) training.precision = precision;
    isKnown = isKnown || word == arguments.precision;
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  if (!isKnown)
    return report(
        invalidInput("--precision", fmt::format("\"{}\" is unknown", arguments.precision), "expected one of: " + known));
  const auto table = importAs(arguments, *model, training);
  if (!table) return report(table.error());
  const Json json = toJson(*table);
  if (!arguments.out.empty()) {
    if (auto written = writeFileAtomically(arguments.out, prettyText(json)); !written) return report(written.error());
  }
  if (arguments.asJson || arguments.out.empty()) {
    printJson(json);
    return kOk;
  }
  std::vector<std::vector<std::string>> rows = {{"device type", "points", "ops", "tp", "samples"}};
  for (const auto& [device, profile] : table->devices) {
    std::set<int> ops, tps;
    std::set<std::int64_t> samples;
    std::size_t points = 0;
    for (const auto& [key, bySamples] : profile.points) {
      ops.insert(static_cast<int>(key.op));
      tps.insert(key.tp);
      points += bySamples.size();
      for (const auto& [count, point] : bySamples) samples.insert(count);
    }
    rows.push_back({device, fmt::format("{}", points), fmt::format("{}", ops.size()), fmt::format("{}", fmt::join(tps, " ")),
                    fmt::format("{}", fmt::join(samples, " "))});
  }
  fmt::print("{}written: {}; next: evenkeel-cli plan ... --profile {}\n", alignedTable(rows), arguments.out, arguments.out);
  return kOk;
}

}  // namespace

void addImport(CLI::App& app, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("import", "Turn files of others into ours: profiles of Metis, Sailor and Aceso, models of Hugging Face, lists of hosts");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("kind", arguments->kind, "metis, sailor, aceso (profiles), hf-config (a model), hostfile, slurm or ssh-config (a cluster)")
      ->required()
      ->check(CLI::IsMember({"metis", "sailor", "aceso", "hf-config", "hostfile", "slurm", "ssh-config"}));
  command
      ->add_option(
          "path", arguments->path,
          "metis: folder of DeviceType.X_tpT_bsB.json; sailor: MODEL folder, MODEL/GPU/profile.json or profiles_tmp.json; "
          "aceso: op table (.csv); hf-config: config.json; hostfile, ssh-config: the file; slurm: a node list such as gpu[01-08], or a file with one")
      ->required();
  command->add_option("--model", arguments->model, "The model that was profiled: file, Hugging Face config.json, or a name of `models`");
  command->add_option("--sequence-length", arguments->sequenceLength, "Tokens a sample (default: the model's context)")
      ->check(CLI::Range(std::int64_t{1}, kMaxSequence));
  command->add_option("--precision", arguments->precision, "fp32, bf16 or fp16 (default fp32)");
  command->add_option("--size", arguments->size, "sailor, aceso: the model's name in a file that holds more");
  command->add_option("--sizes", arguments->sizes, "sailor: llm_info.json, with the sizes of the layers");
  command->add_option("--device", arguments->device, "aceso: rows of this GPU only; sailor: whose profile.json it is; lists of hosts: the type of their devices");
  command->add_option("--count", arguments->count, "Lists of hosts: devices of a host where the list has no slots (default 1)")->check(CLI::Range(1, 1024));
  command->add_option("--out", arguments->out, "Write the profile to this file");
  command->add_flag("--json", arguments->asJson, "The profile as one JSON document on stdout");
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments); });
}

}  // namespace evenkeel::cli
