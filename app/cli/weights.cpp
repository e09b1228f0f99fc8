// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <stop_token>

#include "app/cli/command.h"
#include "app/cli/interrupt.h"
#include "launcher/ssh/local_host.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  std::string from, out;
  bool asJson = false;
};

/// The worker converts: it knows the files. What it says on the way goes to stderr.
int run(const Arguments& arguments, bool comeIn) {
  if (auto checked = checkOutputFolder("--out", arguments.out); !checked) return report(checked.error());
  std::stop_source stop;
  const InterruptWatch watch([&](int) { stop.request_stop(); });
  LocalHost host("this machine");
  const std::string command = comeIn ? "--import-weights" : "--export-weights";
  std::string text, said;
  const auto ending = host.execute({.argv = {ownWorker().string(), command, arguments.from, arguments.out},
                                    .onOutput = [&](std::string_view piece) { text += piece; },
                                    .onErrorOutput =
                                        [&](std::string_view piece) {
                                          said += piece;
                                          note("{}", piece);
                                        }},
                                   stop.get_token());
  if (!ending) return report(ending.error());
  if (!ending->wasGood()) {
    if (said.find("error: ") == std::string::npos) return report(failed("evenkeel-worker " + command, ending->text()));
    return ending->signal.empty() ? ending->exitStatus : kFailed;
  }
  const auto json = parseJson(text, "evenkeel-worker " + command);
  if (!json) return report(json.error());
  if (arguments.asJson) {
    printJson(*json);
    return kOk;
  }
  const std::string folder = json->value("folder", "");
  fmt::print("{}: {} parameters{}\nwritten: {}\n", (*json)["model"].value("name", "model"), json->value("parameters", std::int64_t{0}),
             comeIn ? "" : fmt::format(" of step {}", json->value("step", std::int64_t{0})), folder);
  if (comeIn)
    fmt::print("next: evenkeel-cli plan --model {}/config.json ... --out plan.json; evenkeel-cli launch plan.json --resume {} ...\n", arguments.from, folder);
  return kOk;
}

}  // namespace

void addWeights(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("weights", "Weights from and for Hugging Face's transformers: GPT-2, Llama, Mistral, Qwen2 as safetensors");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, const char* from, const char* out, bool comeIn) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* one = command->add_subcommand(name, what);
    one->add_option("from", arguments->from, from)->required();
    one->add_option("--out", arguments->out, out)->required();
    one->add_flag("--json", arguments->asJson, "What was written as one JSON document on stdout");
    one->callback([arguments, comeIn, &outcome] { outcome.exitCode = run(*arguments, comeIn); });
  };
  add("import", "A folder of theirs becomes a checkpoint that `launch --resume` trains from", "Folder with config.json and safetensors files", "Folder for checkpoints", true);
  add("export", "The weights of a checkpoint become a folder of theirs", "A checkpoint, or a folder of them (the newest is taken)", "Folder that does not exist yet", false);
}

}  // namespace evenkeel::cli
