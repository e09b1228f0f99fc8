// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include "app/cli/command.h"
#include "app/cli/table.h"
#include "core/model/model.h"

namespace evenkeel::cli {
namespace {

Json catalogueJson() {
  Json all = Json::array();
  for (const Model& model : modelCatalogue()) {
    Json entry = toJson(model);
    entry["padded_vocab"] = model.paddedVocab();
    entry["parameters"] = parameterCount(model);
    all.push_back(std::move(entry));
  }
  return all;
}

void print() {
  std::vector<std::vector<std::string>> rows = {{"model", "parameters", "layers", "hidden", "heads", "KV heads", "MLP", "vocabulary", "context"}};
  for (const Model& model : modelCatalogue()) {
    rows.push_back({model.name, fmt::format("{}", parameterCount(model)), fmt::format("{}", model.layers), fmt::format("{}", model.hidden),
                    fmt::format("{}", model.heads), fmt::format("{}", model.kvHeads), fmt::format("{}", model.ffn),
                    fmt::format("{}", model.vocab), fmt::format("{}", model.context)});
  }
  fmt::print("{}", alignedTable(rows));
}

}  // namespace

void addModels(CLI::App& app, Outcome&) {
  CLI::App* command = app.add_subcommand("models", "The models that Evenkeel knows, with exact parameter counts");
  auto asJson = std::make_shared<bool>(false);
  command->add_flag("--json", *asJson, "One JSON document on stdout");
  command->callback([asJson] { *asJson ? printJson(catalogueJson()) : print(); });
}

}  // namespace evenkeel::cli
