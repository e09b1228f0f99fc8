// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/discover/device_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "core/base/json.h"
#include "core/base/words.h"

namespace evenkeel {
namespace {

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr std::size_t kMostDevices = 1024;  // of one node; more is no report of a machine

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

std::vector<std::string> cellsOf(std::string_view line, char separator) {
  std::vector<std::string> cells;
  for (bool more = true; more;) {
    const std::size_t at = line.find(separator);
    more = at != std::string_view::npos;
    cells.push_back(trimmed(line.substr(0, at)));
    if (more) line.remove_prefix(at + 1);
  }
  return cells;
}

std::vector<std::string> linesOf(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

/// "81920", "81920 MiB" -> bytes; nothing for "[N/A]"
Bytes mebibytes(const std::string& cell) {
  const auto number = parseNumber<std::int64_t>(cell.substr(0, cell.find(' ')));
  return {number && *number >= 0 && *number < (std::int64_t{1} << 40U) ? *number * kMebibyte : 0};
}

bool isNothing(const std::string& cell) { return cell.empty() || cell.starts_with('['); }

/// The last two numbers of "0 / 0   3351 / 65536"; zeros if it is something else.
std::pair<std::int64_t, std::int64_t> usedOfTotal(const std::string& text) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string::npos) return {};
  const std::string before = trimmed(text.substr(0, slash));
  const auto used = parseNumber<std::int64_t>(before.substr(before.find_last_of(' ') + 1));
  const auto total = parseNumber<std::int64_t>(trimmed(text.substr(slash + 1)));
  constexpr std::int64_t kMost = std::int64_t{1} << 40U;
  if (!used || !total || *used < 0 || *total < 0 || *used > kMost || *total > kMost) return {};
  return {*used, *total};
}

}  // namespace

DeviceReport parseNvidiaSmi(std::string_view text) {
  DeviceReport report;
  std::map<std::string, std::size_t> column;
  for (const std::string& line : linesOf(text)) {
    const std::vector<std::string> cells = cellsOf(line, ',');
    if (column.empty()) {
      if (cells.size() < 3 || cells.front() != "index") {  // what stands before the header is the tool's complaint, if anything
        if (report.problem.empty()) report.problem = trimmed(line);
        continue;
      }
      report.problem.clear();
      for (std::size_t i = 0; i < cells.size(); ++i) column[cells[i].substr(0, cells[i].find(' '))] = i;  // "memory.total [MiB]"
      continue;
    }
    if (trimmed(line).empty()) continue;
    const auto cell = [&](const std::string& name) {
      const auto found = column.find(name);
      return found == column.end() || found->second >= cells.size() || isNothing(cells[found->second]) ? std::string() : cells[found->second];
    };
    const auto index = parseNumber<int>(cell("index"));
    if (!index || *index < 0 || cell("uuid").empty() || cell("name").empty() || report.devices.size() >= kMostDevices) {
      report.problem = fmt::format("a line of nvidia-smi is not understood: {}", line.substr(0, 120));
      continue;
    }
    FoundDevice device{.index = *index, .product = cell("name"), .uuid = cell("uuid"), .memory = mebibytes(cell("memory.total")),
                       .used = mebibytes(cell("memory.used")), .driver = cell("driver_version"), .capability = cell("compute_cap"),
                       .processes = {}, .problem = {}};
    if (cell("mig.mode.current") == "Enabled") device.problem = "is divided by MIG, so that it is no whole device";
    const std::string faults = cell("ecc.errors.uncorrected.volatile.total");
    if (!faults.empty() && faults != "0") device.problem = fmt::format("has {} uncorrected memory errors (ECC)", faults);
    report.devices.push_back(std::move(device));
  }
  if (column.empty() && report.problem.empty()) report.problem = "nvidia-smi printed nothing";
  return report;
}

void addNvidiaProcesses(std::string_view text, std::vector<FoundDevice>& devices) {
  for (const std::string& line : linesOf(text)) {
    const std::vector<std::string> cells = cellsOf(line, ',');
    if (cells.size() < 2) continue;
    const auto pid = parseNumber<std::int64_t>(cells[1]);
    const auto device = std::ranges::find(devices, cells.front(), &FoundDevice::uuid);
    if (pid && device != devices.end()) device->processes.push_back(*pid);
  }
}

std::string nvidiaLinks(std::string_view text) {
  // From the nearest to the farthest way between two GPUs, as the legend below the matrix has them.
  static const std::vector<std::string> kWays = {"PIX", "PXB", "PHB", "NODE", "SYS"};
  std::size_t gpus = 0;
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : linesOf(text)) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string word; stream >> word;) cells.push_back(word);
    if (cells.empty() || !cells.front().starts_with("GPU")) continue;
    const bool isHeader = rows.empty() && gpus == 0 && cells.size() > 1 && cells[1].starts_with("GPU");
    if (isHeader || (gpus == 0 && cells.size() == 1)) {
      gpus = static_cast<std::size_t>(std::ranges::count_if(cells, [](const std::string& cell) { return cell.starts_with("GPU") && cell.size() > 3 && cell[3] >= '0' && cell[3] <= '9'; }));
      continue;
    }
    if (gpus > 0 && cells.size() > gpus) rows.emplace_back(cells.begin() + 1, cells.begin() + 1 + static_cast<std::ptrdiff_t>(gpus));
  }
  int fewest = 0;
  std::size_t worst = 0;
  bool hasOther = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < gpus; ++j) {
      const std::string& way = rows[i][j];
      if (i == j || way == "X") continue;
      if (way.starts_with("NV")) {
        const auto links = parseNumber<int>(std::string_view(way).substr(2));
        if (links && *links > 0) fewest = fewest == 0 ? *links : std::min(fewest, *links);
        continue;
      }
      const auto found = std::ranges::find(kWays, way);
      if (found == kWays.end()) return {};
      hasOther = true;
      worst = std::max(worst, static_cast<std::size_t>(found - kWays.begin()));
    }
  }
  if (hasOther) return kWays[worst];
  return fewest > 0 ? fmt::format("NV{}", fewest) : std::string();
}

DeviceReport parseRocmSmi(std::string_view text) {
  DeviceReport report;
  // Warnings may stand before the document.
  const std::size_t begin = text.find('{');
  const auto json = parseJson(begin == std::string_view::npos ? text : text.substr(begin), "rocm-smi");
  if (!json || !json->is_object()) {
    report.problem = fmt::format("what rocm-smi prints is not understood: {}", trimmed(text.substr(0, std::min<std::size_t>(text.find('\n'), 120))));
    return report;
  }
  for (const auto& [key, card] : json->items()) {
    if (!key.starts_with("card") || !card.is_object()) continue;
    const auto index = parseNumber<int>(std::string_view(key).substr(4));
    if (!index || *index < 0) continue;
    const auto textOf = [&](std::initializer_list<const char*> names) {
      for (const char* name : names) {
        const auto found = card.find(name);
        if (found != card.end() && found->is_string() && *found != "N/A") return found->get<std::string>();
      }
      return std::string();
    };
    const auto bytes = [&](const char* name) {
      const auto number = parseNumber<std::int64_t>(textOf({name}));
      return Bytes{number && *number >= 0 ? *number : 0};
    };
    FoundDevice device;
    device.index = *index;
    device.product = textOf({"Card Series", "Card series", "Card Model", "Card model"});
    device.uuid = textOf({"Unique ID"});
    device.memory = bytes("VRAM Total Memory (B)");
    device.used = bytes("VRAM Total Used Memory (B)");
    report.devices.push_back(std::move(device));
  }
  std::ranges::sort(report.devices, {}, &FoundDevice::index);
  if (report.devices.empty()) report.problem = "rocm-smi lists no card";
  return report;
}

DeviceReport parseNpuSmi(std::string_view text) {
  DeviceReport report;
  bool inProcesses = false, expectsSecondLine = false;
  std::vector<int> boards;  // the board number of each device: what the table of processes names
  for (const std::string& line : linesOf(text)) {
    if (!line.starts_with('|')) continue;
    std::vector<std::string> cells = cellsOf(line, '|');
    if (cells.size() < 4) continue;
    cells.erase(cells.begin());
    if (line.find("Process id") != std::string::npos) inProcesses = true;
    std::istringstream stream(cells[0]);
    int number = -1;
    std::string product;
    if (!(stream >> number) || number < 0) continue;  // a heading
    stream >> product;
    if (inProcesses) {
      const auto pid = parseNumber<std::int64_t>(cells[1]);
      for (std::size_t i = 0; pid && i < boards.size(); ++i) {
        if (boards[i] == number) report.devices[i].processes.push_back(*pid);
      }
      continue;
    }
    if (!expectsSecondLine) {
      if (product.empty()) continue;
      FoundDevice device;
      device.index = static_cast<int>(report.devices.size());
      device.product = product;
      if (cells[1] != "OK") device.problem = fmt::format("reports health \"{}\"", cells[1].substr(0, 40));
      report.devices.push_back(std::move(device));
      boards.push_back(number);
      expectsSecondLine = true;
      continue;
    }
    expectsSecondLine = false;
    report.devices.back().uuid = cells[1];
    const auto [used, total] = usedOfTotal(cells[2]);
    report.devices.back().used = Bytes{used * kMebibyte};
    report.devices.back().memory = Bytes{total * kMebibyte};
    if (report.devices.size() > kMostDevices) break;
  }
  if (report.devices.empty()) report.problem = "what npu-smi prints is not understood";
  return report;
}

bool isBusy(const FoundDevice& device) {
  return !device.processes.empty() || (device.memory.value > 0 && device.used.value > device.memory.value / 10);
}

}  // namespace evenkeel
