// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cluster/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/base/csv.h"
#include "core/base/words.h"
#include "resources/embedded.h"

namespace evenkeel {
namespace {

constexpr std::pair<const char*, const char*> kFigures[] = {{"peak", "peak_source"},
                                                            {"memory", "memory_source"},
                                                            {"memory_bandwidth", "memory_bandwidth_source"},
                                                            {"intra", "intra_source"},
                                                            {"nic", "nic_source"}};

/// The table is ours and tested: a mistake in it is a bug, reported as precisely as a user's mistake and fatal.
[[noreturn]] void brokenTable(const std::string& what) {
  std::fputs(("resources: " + what + "\n").c_str(), stderr);
  std::abort();
}

double figure(const CsvRow& row, const char* column) {
  const std::string& text = row.fields.at(column);
  const auto value = parseNumber<double>(text);
  if (!value || !(*value > 0)) brokenTable(fmt::format("devices.csv:{}: {} is \"{}\"", row.line, column, text));
  return *value;
}

std::vector<CsvRow> table(std::string_view text, const char* source) {
  auto rows = parseCsv(text, source);
  if (!rows) brokenTable(rows.error().text());
  return *std::move(rows);
}

std::map<std::string, Source> readSources() {
  std::map<std::string, Source> sources;
  for (const CsvRow& row : table(embedded::deviceSourcesCsv(), "device_sources.csv")) {
    sources[row.fields.at("id")] = {row.fields.at("title"), row.fields.at("address"), row.fields.at("date"),
                                    row.fields.at("verified") == "yes"};
  }
  return sources;
}

std::string describe(const std::map<std::string, Source>& sources) {
  std::vector<std::pair<std::string, std::vector<std::string>>> byTitle;
  for (const auto& [what, source] : sources) {
    const std::string title = source.title + (source.verified ? "" : " (unverified)");
    const auto found = std::ranges::find(byTitle, title, [](const auto& entry) { return entry.first; });
    if (found == byTitle.end()) byTitle.push_back({title, {what}});
    else found->second.push_back(what);
  }
  std::string text;
  for (const auto& [title, figures] : byTitle) {
    if (!text.empty()) text += "; ";
    for (std::size_t i = 0; i < figures.size(); ++i) text += (i == 0 ? "" : ", ") + figures[i];
    text += ": " + title;
  }
  return text;
}

std::vector<CatalogueDevice> readCatalogue() {
  const auto sources = readSources();
  std::vector<CatalogueDevice> devices;
  for (const CsvRow& row : table(embedded::devicesCsv(), "devices.csv")) {
    CatalogueDevice device;
    DeviceType& type = device.type;
    type.name = row.fields.at("name");
    type.vendor = row.fields.at("vendor");
    for (const auto& [word, precision] : precisionWords()) {
      const std::string column = fmt::format("{}_tflops", word);
      if (!row.fields.at(column).empty()) type.peak[precision] = fromTflops(figure(row, column.c_str()));
    }
    type.memory = fromGib(figure(row, "memory_gib"));
    type.memoryBandwidth = fromGbs(figure(row, "memory_bandwidth_gbs"));
    type.intra = {fromGbs(figure(row, "intra_bandwidth_gbs")), fromMicroseconds(figure(row, "intra_latency_us"))};
    type.nicBandwidth = fromGbs(figure(row, "nic_bandwidth_gbs"));
    type.nicPerDevice = row.fields.at("nic_per") == "device";
    type.runsHere = row.fields.at("runs") == "runs here";
    for (const auto& [what, column] : kFigures) {
      const auto found = sources.find(row.fields.at(column));
      if (found == sources.end()) {
        brokenTable(fmt::format("devices.csv:{}: {} \"{}\" is not in device_sources.csv", row.line, column, row.fields.at(column)));
      }
      device.sources[what] = found->second;
    }
    type.source = describe(device.sources);
    devices.push_back(std::move(device));
  }
  return devices;
}

std::string nearNames(std::string_view wanted) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const CatalogueDevice& device : deviceCatalogue()) {
    const std::string known = lowerCase(device.type.name), asked = lowerCase(std::string(wanted.substr(0, 64)));
    const bool contained = asked.size() >= 2 && known.find(asked) != std::string::npos;
    ranked.emplace_back(contained ? 0 : editDistance(asked, known), device.type.name);
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, ranked.size()); ++i) text += (i == 0 ? "" : ", ") + ranked[i].second;
  return text;
}

}  // namespace

const std::vector<CatalogueDevice>& deviceCatalogue() {
  static const std::vector<CatalogueDevice> devices = readCatalogue();
  return devices;
}

Result<DeviceType> deviceTypeNamed(std::string_view name) {
  const std::size_t at = name.find('@');
  const std::string_view base = name.substr(0, at);
  const auto& devices = deviceCatalogue();
  const auto found = std::ranges::find(devices, base, [](const CatalogueDevice& device) { return device.type.name; });
  if (found == devices.end()) {
    return invalidInput(std::string(name.substr(0, 80)), "is not a known device type",
                        fmt::format("near names: {}; `evenkeel-cli devices` lists all, a cluster file may define others "
                                    "under device_types", nearNames(base)));
  }
  DeviceType type = found->type;
  if (at != std::string_view::npos) {
    const auto speed = parseNumber<double>(name.substr(at + 1));
    if (!speed || *speed < 1e-6 || *speed > 100.0) {
      return invalidInput(std::string(name.substr(0, 80)), "has no usable speed after @", "expected a number above 0 and at most 100, as in cpu@0.25");
    }
    type.name = std::string(name);
    type.speed = *speed;
  }
  return type;
}

}  // namespace evenkeel
