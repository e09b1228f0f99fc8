// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include "app/cli/command.h"
#include "app/cli/table.h"
#include "core/cluster/catalogue.h"

namespace evenkeel::cli {
namespace {

Json catalogueJson() {
  Json all = Json::array();
  for (const CatalogueDevice& device : deviceCatalogue()) {
    Json entry = toJson(device.type);
    entry["runs"] = device.type.runsHere ? "runs here" : "plan only";
    for (const auto& [figure, source] : device.sources) {
      entry["sources"][figure] = {{"title", source.title}, {"address", source.address}, {"date", source.date}, {"verified", source.verified}};
    }
    all.push_back(std::move(entry));
  }
  return all;
}

std::string peakOf(const DeviceType& type, Precision precision) {
  return type.has(precision) ? fmt::format("{:.4g}", tflops(type.peak.at(precision))) : "-";
}

void print() {
  std::vector<std::vector<std::string>> rows = {{"device", "fp32", "bf16", "fp16", "GiB", "GB/s", "in node", "NIC", "", "unverified figures"}};
  for (const CatalogueDevice& device : deviceCatalogue()) {
    const DeviceType& type = device.type;
    std::string unverified;
    for (const auto& [figure, source] : device.sources) {
      if (!source.verified) unverified += (unverified.empty() ? "" : ", ") + figure;
    }
    rows.push_back({type.name, peakOf(type, Precision::Fp32), peakOf(type, Precision::Bf16), peakOf(type, Precision::Fp16),
                    fmt::format("{:.4g}", gib(type.memory)), fmt::format("{:.4g}", gbs(type.memoryBandwidth)),
                    fmt::format("{:.4g}", gbs(type.intra.bandwidth)),
                    fmt::format("{:.4g}/{}", gbs(type.nicBandwidth), type.nicPerDevice ? "device" : "node"),
                    type.runsHere ? "runs here" : "plan only", unverified});
  }
  fmt::print("Peaks are dense TFLOP/s; bandwidths are GB/s per direction. `--json` gives the source of each figure.\n\n{}", alignedTable(rows));
}

}  // namespace

void addDevices(CLI::App& app, Outcome&) {
  CLI::App* command = app.add_subcommand("devices", "The device types that Evenkeel knows, with the source of each figure");
  auto asJson = std::make_shared<bool>(false);
  command->add_flag("--json", *asJson, "One JSON document on stdout");
  command->callback([asJson] { *asJson ? printJson(catalogueJson()) : print(); });
}

}  // namespace evenkeel::cli
